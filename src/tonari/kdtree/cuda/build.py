"""Build the tree on a CUDA device: all segments of a level are split at once by sorting (segment, value) keys.

gieseke2014 builds its top tree on the host (section 3.3), because the tree is small compared with the queries. Here it
extends down to leaves of 64 points, and the device sorts two million keys in half a millisecond.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from tonari import inputs
from tonari.cuda.devices import to_device
from tonari.cuda.launch import launch
from tonari.cuda.streams import Written
from tonari.kdtree.cuda.search import beyond
from tonari.kdtree.cuda.tree import BLOCK, WIDTH, DeviceTree, leaf_of, levels_of
from tonari.kdtree.plan import TreePlan

SAMPLED = 1 << 17  # points sampled per level to find the dimension in which each segment varies most
MOST_SAMPLED, LEAST_SAMPLED = 64, 16  # limits of the sample per segment; powers of two, as SAMPLED is
SPREAD_SEGMENTS = 16  # per program
KEY_BLOCK = 1024
MOST_STEP_BITS = 24  # the significand of float32


def build_checked(points: Any, plan: TreePlan, device: Any, first: int) -> DeviceTree | None:
    """Build the tree of all these points on a device, or return None if a tree cannot compare their values.

    Waits for the device. Messages number the points from `first`.
    """
    rows = to_device(points, device)
    if bool(beyond(rows, plan.metric).any()):
        inputs.check_values(points, "points", first=first, nonnegative=False)
        return None
    return build_on_device(rows, leaf=leaf_of(len(points), plan.leaf), double=plan.held == "float64")


def build_on_device(points: Any, *, leaf: int, double: bool) -> DeviceTree:
    """Build the tree of some points on their device.

    Parameters
    ----------
    points : tensor of shape (n, d), checked, with finite values
    leaf : int
        Points per leaf, a multiple of 64.
    double : bool
        Hold the points as float64; otherwise as float32, which is exact for all dtypes but float64.
    """
    n, d = points.shape
    rows = points.to(torch.float64 if double else torch.float32).contiguous()
    device = rows.device
    leaves = -(-n // leaf)
    rounds = split_bounds(leaves)
    # One copy for all rounds: every copy to the device waits for the work queued before it.
    places = torch.from_numpy(np.minimum(np.concatenate([*rounds, [0]]) * leaf, n)).to(device)
    order = torch.arange(n, device=device)
    for bounds in places.split([*map(len, rounds), 1])[:-1]:
        order = order[torch.sort(_keys(rows, order, bounds), stable=True).indices]

    room = leaves * leaf
    ids = torch.full((room,), -1, dtype=torch.int32, device=device)
    ids[:n] = order
    placed = torch.full((room, d), float("inf"), dtype=rows.dtype, device=device)
    placed[:n] = rows[order]
    blocks = placed.view(room // BLOCK, BLOCK, d).transpose(1, 2).contiguous()
    boxes, levels = _boxes(blocks, leaf, n)
    return DeviceTree(n, d, leaf, ids, blocks, boxes, levels, Written(ids, blocks, boxes))


@functools.lru_cache(maxsize=4)
def split_bounds(leaves: int) -> list[npt.NDArray[np.int64]]:
    """Return the bounds of the segments, in leaves, before each round of splits.

    A segment is cut as near to its middle as possible while its left part consists of whole nodes. Nodes are runs of 32
    children; this way none of them spans a cut made at a higher level.

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
            unit[wider] *= WIDTH
        units = (sizes + unit - 1) // unit
        both = np.empty((len(sizes), 2), np.int64)
        both[:, 0] = bounds[:-1]
        both[:, 1] = bounds[:-1] + (units + 1) // 2 * unit
        begins = both[both < bounds[1:, None]]  # a single leaf is not cut
        bounds = np.append(begins, leaves)
    return found


def _keys(rows: Any, order: Any, bounds: Any) -> Any:
    """Return an int32 key per position of `order`, sorting by (segment, value in its widest dimension)."""
    from tonari.kdtree.cuda.kernels.split import key_kernel, spread_kernel

    n, d = rows.shape
    segments = len(bounds) - 1
    halvings = (segments - 1).bit_length()
    samples = min(MOST_SAMPLED, max(LEAST_SAMPLED, SAMPLED >> halvings))
    widest = torch.empty(segments, dtype=torch.int32, device=rows.device)
    low, high = torch.empty((2, segments), dtype=rows.dtype, device=rows.device)
    launch(
        spread_kernel,
        -(-segments // SPREAD_SEGMENTS),
        {
            "rows_ptr": rows,
            "order_ptr": order,
            "bounds_ptr": bounds,
            "widest_ptr": widest,
            "low_ptr": low,
            "high_ptr": high,
            "segments": segments,
            "last": n - 1,
        },
        constants={"D": d, "SAMPLES": samples, "SEGMENTS": SPREAD_SEGMENTS},
        warps=4,
    )
    keys = torch.empty(n, dtype=torch.int32, device=rows.device)
    launch(
        key_kernel,
        -(-n // KEY_BLOCK),
        {
            "rows_ptr": rows,
            "order_ptr": order,
            "bounds_ptr": bounds,
            "widest_ptr": widest,
            "low_ptr": low,
            "high_ptr": high,
            "keys_ptr": keys,
            "n": n,
            "segments": segments,
            "halvings": halvings,
            "bits": min(MOST_STEP_BITS, 31 - halvings),
        },
        constants={"D": d, "BLOCK": KEY_BLOCK},
        warps=4,
    )
    return keys


def _boxes(blocks: Any, leaf: int, n: int) -> tuple[Any, tuple[int, ...]]:
    """Compute the boxes of all levels, concatenated, and the node at which each level begins."""
    d = blocks.shape[1]
    leaves = -(-n // leaf)
    counts = levels_of(leaves)
    boxes = torch.full((sum(counts), d, 2, WIDTH), float("inf"), dtype=blocks.dtype, device=blocks.device)
    low = blocks.amin(2).view(leaves, -1, d).amin(1)
    # Padding after the last point is +inf, which must not enter the maxima.
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
