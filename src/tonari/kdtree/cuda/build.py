"""Build the tree on a CUDA device.

    split      cut all segments of a level at once, by sorting (segment, value) keys, until each is a node of 32 leaves
    halve      split each node separately, five times (kernels/halve.py)
    place      copy the points to their leaves, and compute the boxes (kernels/place.py)

gieseke2014 builds its top tree on the host (section 3.3), because the tree is small compared with the queries. Here the
tree extends down to leaves of 64 points, and the device sorts two million keys in half a millisecond.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from tonari import inputs
from tonari.core.process.caches import cached
from tonari.cuda.compiling.rehearsal import numbers_from, order_of
from tonari.cuda.devices import to_device
from tonari.cuda.launch import launch
from tonari.cuda.streams import Written
from tonari.kdtree import tuning
from tonari.kdtree.cuda.search import has_beyond
from tonari.kdtree.cuda.tree import BLOCK, WIDTH, DeviceTree, leaf_of, levels_of
from tonari.kdtree.plan import TreePlan

SAMPLED = 1 << 17  # points sampled per level, to find each segment's dimension of largest variance; a power of two
MOST_SAMPLED, LEAST_SAMPLED = 64, 16  # maximum and minimum number of points sampled from one segment; powers of two
MOST_STEP_BITS = 24  # maximum number of bits of a step in a sort key, as in the significand of float32


def build_checked(points: Any, plan: TreePlan, device: Any, first: int) -> DeviceTree | None:
    """Build the tree of the points on a device; return None if a value is too large for a tree to compare.

    Waits for the device. In error messages, the row numbers of the points begin at `first`.
    """
    rows = to_device(points, device)
    if has_beyond(rows, plan.metric):
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
        Store the points as float64; otherwise as float32, which is exact for all dtypes except float64.
    """
    n, d = points.shape
    rows = points.to(torch.float64 if double else torch.float32).contiguous()
    leaves = -(-n // leaf)
    order = _ordered(rows, leaf, leaves)
    ids, placed, boxes, levels = _placed(rows, order, leaf, leaves)
    return DeviceTree(n, d, leaf, ids, placed, boxes, levels, Written(ids, placed, boxes))


def _ordered(rows: Any, leaf: int, leaves: int) -> Any:
    """Return the row numbers of the points, leaf by leaf, int64 (n,); every leaf except the last is full."""
    from tonari.kdtree.cuda.kernels.halve import halve_kernel

    n, d = rows.shape
    order = numbers_from(0, n, rows.device)
    halved = leaf <= tuning.MOST_HALVED and d <= tuning.MOST_HALVED_COLUMNS
    rounds = split_bounds(leaves, WIDTH if halved else 1)
    if rounds:
        # The bounds of all rounds are copied together, because a copy to the device waits for all work queued before.
        places = torch.from_numpy(np.minimum(np.concatenate(rounds) * leaf, n)).to(rows.device)
        for bounds in places.split([*map(len, rounds)]):
            place = order_of(_keys(rows, order, bounds))
            order = place if rows.device.type == "meta" else order[place]
    if halved and leaves > 1:
        room = 1 << (leaf - 1).bit_length()
        for level in range(WIDTH.bit_length() - 1):
            launch(
                halve_kernel,
                -(-leaves // WIDTH),
                {"rows_ptr": rows, "order_ptr": order, "n": n, "leaf": leaf},
                constants={
                    "D": d,
                    "LEAF": room,
                    "COUNT": 1 << level,
                    "LEAVES": WIDTH >> level,
                    "BITS": MOST_STEP_BITS,
                },
                warps=room // 8,
            )
    return order


@cached(maxsize=4)
def split_bounds(leaves: int, whole: int = 1) -> list[npt.NDArray[np.int64]]:
    """Return the bounds of all segments before each round of splits, in leaves; no segment exceeds `whole` at the end.

    A segment is cut as near to its middle as possible, such that its left part consists of whole nodes. (A node has 32
    children.) Therefore no node has children on both sides of a cut that was made on a higher level.

    >>> [bounds.tolist() for bounds in split_bounds(5)]
    [[0, 5], [0, 3, 5], [0, 2, 3, 4, 5]]
    >>> [bounds.tolist() for bounds in split_bounds(70, whole=32)]
    [[0, 70], [0, 64, 70]]
    """
    bounds = np.array([0, leaves], np.int64)
    found = []
    while (sizes := np.diff(bounds)).max() > whole:
        found.append(bounds)
        unit = np.ones_like(sizes)
        while (wider := unit * WIDTH < sizes).any():
            unit[wider] *= WIDTH
        units = (sizes + unit - 1) // unit
        both = np.empty((len(sizes), 2), np.int64)
        both[:, 0] = bounds[:-1]
        both[:, 1] = bounds[:-1] + (units + 1) // 2 * unit
        begins = both[both < bounds[1:, None]]  # a segment of one leaf is not cut
        bounds = np.append(begins, leaves)
    return found


def _keys(rows: Any, order: Any, bounds: Any) -> Any:
    """Return int32 keys that sort `order` by segment, then by the row's value in the segment's widest dimension."""
    from tonari.kdtree.cuda.kernels.split import key_kernel, spread_kernel

    n, d = rows.shape
    segments = len(bounds) - 1
    halvings = (segments - 1).bit_length()
    samples = min(MOST_SAMPLED, max(LEAST_SAMPLED, SAMPLED >> halvings))
    widest = torch.empty(segments, dtype=torch.int32, device=rows.device)
    # Two tensors, not two rows of one: the second row would be aligned only in some rounds, and each kernel would need
    # two compiled variants.
    low, high = (torch.empty(segments, dtype=rows.dtype, device=rows.device) for _ in range(2))
    launch(
        spread_kernel,
        -(-segments // tuning.SPREAD_SEGMENTS),
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
        constants={"D": d, "SAMPLES": samples, "SEGMENTS": tuning.SPREAD_SEGMENTS},
        warps=4,
    )
    keys = torch.empty(n, dtype=torch.int32, device=rows.device)
    launch(
        key_kernel,
        -(-n // tuning.KEY_BLOCK),
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
        constants={"D": d, "BLOCK": tuning.KEY_BLOCK},
        warps=4,
    )
    return keys


def _placed(rows: Any, order: Any, leaf: int, leaves: int) -> tuple[Any, Any, Any, tuple[int, ...]]:
    """Copy the points to their leaves, and compute the boxes; return the tree's `ids`, `rows`, `boxes`, `levels`."""
    from tonari.kdtree.cuda.kernels.place import enclose_kernel, place_kernel

    (n, d), device = rows.shape, rows.device
    blocks, counts = leaf // BLOCK, levels_of(leaves)
    ids = torch.empty(leaves * leaf, dtype=torch.int32, device=device)
    placed = torch.empty((leaves * blocks, d, BLOCK), dtype=rows.dtype, device=device)
    boxes = torch.full((sum(counts), d, 2, WIDTH), float("inf"), dtype=rows.dtype, device=device)
    launch(
        place_kernel,
        leaves,
        {
            "rows_ptr": rows,
            "order_ptr": order,
            "ids_ptr": ids,
            "placed_ptr": placed,
            "boxes_ptr": boxes,
            "n": n,
            "blocks": blocks,
        },
        constants={"D": d, "BLOCK": BLOCK, "WIDTH": WIDTH},
        warps=1,
    )
    levels = tuple(itertools.accumulate(counts[:-1], initial=0))
    for (below, begin), (children, nodes) in zip(itertools.pairwise(levels), itertools.pairwise(counts), strict=True):
        launch(
            enclose_kernel,
            nodes,
            {"boxes_ptr": boxes, "below": below, "children": children, "begin": begin},
            constants={"D": d, "WIDTH": WIDTH},
            warps=1,
        )
    return ids, placed, boxes, levels
