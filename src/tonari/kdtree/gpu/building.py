"""Building the tree on a card: all segments of a level are split at once by sorting (segment, value) keys.

gieseke2014 builds its top tree on the host (section 3.3), since it is small beside the queries; here the tree reaches
down to leaves of 64 points, and the card sorts two million keys in half a millisecond.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from tonari.kdtree.gpu.tree import BLOCK, WIDTH, DeviceTree, levels_of

SAMPLED = 1 << 17  # points that are asked, on each level, which dimension their segment is the widest in:
MOST_SAMPLED, LEAST_SAMPLED = 64, 16  # of a segment
MOST_STEP_BITS = 24  # float32 has no more


def build_on_device(points: Any, *, leaf: int, double: bool) -> DeviceTree:
    """Arrange points on their device.

    Parameters
    ----------
    points : tensor of shape (n, d), checked, with finite values
    leaf : int
        Points of a leaf, a multiple of 64.
    double : bool
        Rows in float64 instead of float32, which holds every narrower type.
    """
    n, d = points.shape
    rows = points.to(torch.float64 if double else torch.float32).contiguous()
    device = rows.device
    leaves = -(-n // leaf)
    order = torch.arange(n, device=device)
    rounds = split_bounds(leaves)
    # All in one copy: each copy would wait for what is under way.
    places = torch.from_numpy(np.minimum(np.concatenate([*rounds, [0]]) * leaf, n)).to(device)
    numbers = torch.arange(n, device=device)
    for bounds in places.split([*map(len, rounds), 1])[:-1]:
        begins, ends = bounds[:-1], bounds[1:]
        segments = torch.bucketize(numbers, ends, right=True)
        widest, low, high = _widest(rows, order, begins, ends)
        values = rows.view(-1)[order * d + widest[segments]]
        order = order[torch.sort(_keys(segments, values, low, high), stable=True).indices]

    room = leaves * leaf
    ids = torch.full((room,), -1, dtype=torch.int32, device=device)
    ids[:n] = order
    placed = torch.full((room, d), float("inf"), dtype=rows.dtype, device=device)
    placed[:n] = rows[order]
    blocks = placed.view(room // BLOCK, BLOCK, d).transpose(1, 2).contiguous()
    boxes, levels = _boxes(blocks, leaf, n)
    return DeviceTree(n, d, leaf, ids, blocks, boxes, levels)


def split_bounds(leaves: int) -> list[npt.NDArray[np.int64]]:
    """Leaves at which segments begin, and the end of the last, before each round of splits.

    A segment is cut as near its middle as lets the left part be made of whole nodes, so that nodes, which are runs of
    32, never join what was cut apart above them.

    >>> [bounds.tolist() for bounds in split_bounds(5)]
    [[0, 5], [0, 3, 5], [0, 2, 3, 4, 5]]
    >>> split_bounds(70)[0].tolist(), split_bounds(70)[1].tolist()
    ([0, 70], [0, 64, 70])
    """
    bounds = np.array([0, leaves], np.int64)
    found = []
    while (sizes := np.diff(bounds)).max() > 1:
        found.append(bounds)
        unit = np.ones_like(sizes)
        while (wider := unit * WIDTH < sizes).any():
            unit = np.where(wider, unit * WIDTH, unit)
        units = (sizes + unit - 1) // unit
        left = (units + 1) // 2 * unit
        cut = np.where(sizes > 1, bounds[:-1] + left, bounds[1:])
        bounds = np.unique(np.concatenate([bounds, cut]))
    return found


def _widest(rows: Any, order: Any, begins: Any, ends: Any) -> tuple[Any, Any, Any]:
    """The dimension of the largest variance in each segment, and its ends, by a sample that is evenly spaced in it."""
    count = min(MOST_SAMPLED, max(LEAST_SAMPLED, SAMPLED // len(begins)))
    steps = torch.arange(count, device=rows.device)
    sizes = (ends - begins)[:, None]
    places = begins[:, None] + steps * sizes // count
    sample = rows[order[places.clamp_(max=len(order) - 1)]]
    low, high = sample.amin(1), sample.amax(1)
    widest = sample.var(1).argmax(1)[:, None]
    return widest.view(-1), low.gather(1, widest).view(-1), high.gather(1, widest).view(-1)


def _keys(segments: Any, values: Any, low: Any, high: Any) -> Any:
    """int32 keys that order as (segment, value) does: values in as many steps of their segment's range as fit.

    A split need not be a median to the last place: boxes are made of what lies in them.
    """
    step_bits = min(MOST_STEP_BITS, 31 - int(len(low) - 1).bit_length())
    steps = 1 << step_bits
    scale = torch.where(high > low, (steps - 1) / (high - low), 0.0)
    at = ((values - low[segments]) * scale[segments]).clamp_(0, steps - 1)
    return (segments << step_bits).int() + at.int()


def _boxes(blocks: Any, leaf: int, n: int) -> tuple[Any, tuple[int, ...]]:
    """Boxes of all levels behind each other, and where each begins."""
    d = blocks.shape[1]
    leaves = -(-n // leaf)
    counts = levels_of(leaves)
    boxes = torch.full((sum(counts), d, 2, WIDTH), float("inf"), dtype=blocks.dtype, device=blocks.device)
    low = blocks.amin(2).view(leaves, -1, d).amin(1)
    # Behind the last point all is +inf.
    high = blocks.masked_fill(blocks == float("inf"), -float("inf")).amax(2).view(leaves, -1, d).amax(1)
    levels = []
    begin = 0
    for nodes in counts:
        levels.append(begin)
        whole = nodes * WIDTH
        padded = torch.full((2, whole, d), float("inf"), dtype=blocks.dtype, device=blocks.device)
        padded[0, : len(low)] = low
        padded[1, : len(high)] = high
        boxes[begin : begin + nodes] = padded.view(2, nodes, WIDTH, d).permute(1, 3, 0, 2)
        padded[1, len(high) :] = -float("inf")
        low, high = padded[0].view(nodes, WIDTH, d).amin(1), padded[1].view(nodes, WIDTH, d).amax(1)
        begin += nodes
    return boxes, tuple(levels)
