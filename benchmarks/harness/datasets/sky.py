"""A synthetic catalogue of the sky, shaped like SDSS photometry."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

from .data import Array, Data, blocks, split

POPULATIONS = 12
# Number of N(0, 1) draws per row: one for brightness, four for colours, one for extent, 15 for errors of magnitudes.
MAGNITUDE_DRAWS = 6 + 15
COLOUR_SPREAD = (0.25, 0.12, 0.08, 0.08)


class Sky(NamedTuple):
    """Kinds of objects.

    Each kind has its r-band brightness, its colours (u-g, g-r, r-i, i-z), its extent (0: a star), and the cumulative
    share of objects up to this kind.
    """

    brightness: Array
    colours: Array
    extended: Array
    shares: Array


@functools.cache
def sky() -> Sky:
    """Return the kinds of objects from which every catalogue of this module is drawn."""
    rng = np.random.default_rng(99)
    shares = rng.uniform(0.2, 1, POPULATIONS)
    return Sky(
        rng.uniform(16, 22, POPULATIONS).astype(np.float32),
        rng.normal([1.2, 0.6, 0.3, 0.2], [0.6, 0.35, 0.25, 0.2], (POPULATIONS, 4)).astype(np.float32),
        (np.arange(POPULATIONS) % 2).astype(np.float32),
        np.cumsum(shares / shares.sum()),
    )


def fill_magnitudes(rows: Any, kind: Any, draws: Any, sky: Sky) -> None:
    """Write magnitudes to ``rows`` (m, d), of NumPy or torch, from kinds (m,) and N(0, 1) draws (m, 21).

    ``sky`` has arrays of the library of ``rows``. :func:`magnitudes` describes the columns.
    """
    d = rows.shape[1]
    colours = sky.colours[kind]
    red = sky.brightness[kind] + 1.2 * draws[:, 0]
    ug, gr, ri, iz = (colours[:, i] + COLOUR_SPREAD[i] * draws[:, 1 + i] for i in range(4))
    green = red + gr
    infrared = red - ri
    bands = (green + ug, green, red, infrared, infrared - iz)
    error = 0.02 * 10 ** (0.15 * (red - 18))
    # The point-spread function misses a part of a galaxy's light, Petrosian's aperture a smaller part, and the galaxy
    # model none.
    extent = sky.extended[kind] * abs(0.4 + 0.2 * draws[:, 5])
    for j in range(min(d, 15)):
        model, band = divmod(j, 5)
        rows[:, j] = bands[band] + (1.0, 0.0, 0.15)[model] * extent + error * draws[:, 6 + j]
    for j in range(15, d):
        model, band = divmod(j - 15, 4)
        rows[:, j] = rows[:, 5 * model + band] - rows[:, 5 * model + band + 1]


def magnitudes(n: int, m: int, d: int = 10, *, seed: int = 0) -> Data:
    """Return a synthetic float32 catalogue like SDSS photometry: correlated magnitudes of stars and galaxies.

    The 27 columns are the magnitudes u, g, r, i, z by the point-spread function, by the galaxy model and in Petrosian's
    aperture (15 columns), then the four colours of each of these three. The first 5, 10, 15 and 27 columns are the
    feature sets "psf", "psf + model", "all magnitudes" and "all" of gieseke2014. Errors grow towards faint objects.
    """
    if not 1 <= d <= 27:
        raise ValueError(f"a catalogue row has 1 to 27 columns, got d = {d}")
    rng = np.random.default_rng(seed)
    rows = np.empty((n + m, d), np.float32)
    for part in blocks(rows):
        kind = np.searchsorted(sky().shares[:-1], rng.random(len(part)), side="right")
        fill_magnitudes(part, kind, rng.standard_normal((len(part), MAGNITUDE_DRAWS), dtype=np.float32), sky())
    return split(rows, n)
