"""Rows like GIST: responses of 20 oriented filters, in 3 colours, in each of 4 x 4 cells of a window of a picture.

Oliva and Torralba's descriptor of colour pictures has 3 x (8 + 8 + 4) x 16 = 960 numbers. Here a window of 32 to 128
pixels is at a random position in one of the photographs of scikit-image and scikit-learn. These are few photographs,
and the windows of a single picture would form a surface of three dimensions. So a row is a blend of two windows (60 to
100 % of the first), with a gain of 0.7 to 1.3 for each colour. The rows have the statistics of real filter responses,
and about ten dimensions.
"""

from __future__ import annotations

import math
from typing import Any

from . import photographs

CELLS = 4
# Number of filter orientations at each of the three scales, finest scale first.
ORIENTATIONS = (8, 8, 4)
FILTERS = sum(ORIENTATIONS)
COLOURS = 3
WIDTH = CELLS * CELLS * COLOURS * FILTERS
# Largest side of a picture in pixels; larger pictures are shrunk to it.
PICTURE = 512
# Minimum and maximum width of a window, in pixels.
WINDOW = (32, 128)
LEAST_SHARE = 0.6
GAIN = (0.7, 1.3)
# Frequency of the finest filters, in cycles per pixel.
FINEST = 0.3
# Bandwidth of each filter, in octaves.
OCTAVES = 0.55
BLOCK = 1 << 14


def gist(n: int, where: str, seed: int) -> Any:
    """Return GIST-like rows (n, 960), float32, on the torch device `where`."""
    import torch

    pictures = photographs.colour_photographs(PICTURE)
    # The windows are drawn in host memory, so that they are the same for every device.
    generator = torch.Generator().manual_seed(seed)
    chosen = torch.randint(len(pictures), (2, n), generator=generator)
    place = torch.rand((2, n, 3), generator=generator)
    share = LEAST_SHARE + (1 - LEAST_SHARE) * torch.rand(n, generator=generator)
    gain = GAIN[0] + (GAIN[1] - GAIN[0]) * torch.rand((n, COLOURS), generator=generator)
    rows = torch.zeros((n, WIDTH), dtype=torch.float32, device=where)
    for number, picture in enumerate(pictures):
        sums = integral(responses(torch.from_numpy(picture).to(where)))
        for side, weight in ((0, share), (1, 1 - share)):
            mine = (chosen[side] == number).nonzero()[:, 0]
            for block in mine.split(BLOCK):
                cells = means(sums, place[side, block].to(where))
                factor = (weight[block, None] * gain[block]).to(where)
                values = cells.view(len(block), -1, COLOURS, FILTERS) * factor[:, None, :, None]
                rows.index_add_(0, block.to(where), values.reshape(len(block), WIDTH))
    return rows


def responses(picture: Any) -> Any:
    """Return the magnitudes (height, width, 3, 20) of all filters' responses to an 8-bit picture (height, width, 3)."""
    import torch

    height, width = picture.shape[:2]
    spectrum = torch.fft.fft2(picture.movedim(2, 0).to(torch.float32))
    y = torch.fft.fftfreq(height, device=picture.device)[:, None]
    x = torch.fft.fftfreq(width, device=picture.device)[None, :]
    frequency = torch.hypot(x, y).clamp_(min=1e-6)
    angle = torch.atan2(y, x)
    found = []
    for scale, orientations in enumerate(ORIENTATIONS):
        band = torch.exp(-((frequency * (2**scale / FINEST)).log() ** 2) / (2 * OCTAVES**2))
        for i in range(orientations):
            turn = angle - math.pi * i / orientations
            turn = torch.atan2(turn.sin(), turn.cos())
            wedge = torch.exp(-(turn**2) * (orientations / math.pi) ** 2)
            found.append(torch.fft.ifft2(spectrum * (band * wedge)).abs())
    return torch.stack(found, dim=-1).movedim(0, 2)


def integral(maps: Any) -> Any:
    """Return, for each corner of a pixel, the float64 sums over all pixels above it and to its left."""
    import torch

    height, width = maps.shape[:2]
    sums = torch.zeros((height + 1, width + 1, maps[0, 0].numel()), dtype=torch.float64, device=maps.device)
    sums[1:, 1:] = maps.reshape(height, width, -1)
    return sums.cumsum_(0).cumsum_(1)


def means(sums: Any, place: Any) -> Any:
    """Return means (rows, 16, filters), float32, of the filter responses in the 16 cells of each window.

    `place` (rows, 3) has the top, the left edge and the size of each window, as fractions from 0 to 1.
    """
    import torch

    height, width = (size - 1 for size in sums.shape[:2])
    most = min(WINDOW[1], height, width)
    size = min(WINDOW[0], most) + place[:, 2] * (most - min(WINDOW[0], most))
    fractions = torch.arange(CELLS + 1, device=place.device) / CELLS
    top, left = (
        (place[:, i, None] * (room - size)[:, None] + size[:, None] * fractions).long()
        for i, room in ((0, height), (1, width))
    )
    corners = sums[top[:, :, None], left[:, None, :]]
    inside = corners.diff(dim=1).diff(dim=2)
    area = top.diff(dim=1)[:, :, None] * left.diff(dim=1)[:, None, :]
    return (inside / area[..., None]).flatten(1, 2).to(torch.float32)
