"""Points and their trees on CUDA devices, kept between searches; the trees of slabs are kept in host memory.

    points  --build-->  tree  --staging.py-->  host memory      once, in `prepare`, while the next tree is built
    host memory  --prefetch.py-->  tree                         in every search, while the previous slab is searched

The tree of a million points in 10 dimensions has 45 MB. Copying it to the device takes 1.1 ms at 40 GB/s; a device
answers a hundred thousand queries in that time. Without the stored tree, a search would have to copy the points, which
have 40 MB, and to sort them once for each of the 14 levels of splits.
"""

from __future__ import annotations

import contextlib
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from tonari.core.process.progress import ProgressLike
from tonari.core.rows.slices import cut
from tonari.cuda.copying.prefetch import slabs
from tonari.cuda.copying.staging import Collector
from tonari.cuda.device_threads import a_thread_each, side_by_side
from tonari.cuda.devices import on
from tonari.cuda.streams import Written
from tonari.kdtree.cuda.build import build_checked
from tonari.kdtree.cuda.tree import BLOCK, WIDTH, DeviceTree, device_tree_bytes, leaf_of, levels_of, part_bytes
from tonari.kdtree.plan import TreePlan

LINE = 256  # bytes per line of the stored trees: the ids, rows and boxes of a tree each take whole lines


@dataclass(frozen=True)
class KeptTrees:
    """The trees of all slabs of some points in host memory, each stored as the bytes of its ids, rows and boxes.

    Attributes
    ----------
    memory : uint8 array of shape (lines, LINE)
    places : list of slice, or None
        The lines of `memory` that each slab's tree takes; None for a slab with values that a tree cannot compare.
    sizes : list of int
        Points per slab.
    d, leaf : int
        Dimensions, and target leaf size.
    dtype : torch.dtype
        The dtype of the rows in the trees.
    """

    memory: npt.NDArray[np.uint8]
    places: list[slice | None]
    sizes: list[int]
    d: int
    leaf: int
    dtype: Any

    def arriving(self, device: Any) -> Generator[DeviceTree | None, None, None]:
        """Yield the tree of each slab in order, copied to a device; a tree is valid until the next one is requested."""
        order = [place for place in self.places if place is not None]
        with contextlib.closing(slabs(self.memory, order, device)) as trees:
            for size, place in zip(self.sizes, self.places, strict=True):
                yield None if place is None else self._tree(next(trees), size)

    def _tree(self, memory: Any, n: int) -> DeviceTree:
        leaf, itemsize = leaf_of(n, self.leaf), self.dtype.itemsize
        ids, rows, boxes = memory.view(-1).split(part_bytes(n, self.d, leaf, itemsize))
        levels, begin = [], 0
        for nodes in levels_of(-(-n // leaf)):
            levels.append(begin)
            begin += nodes
        return DeviceTree(
            n,
            self.d,
            leaf,
            ids.view(torch.int32),
            rows.view(self.dtype).view(-1, self.d, BLOCK),
            boxes.view(self.dtype).view(-1, self.d, 2, WIDTH),
            tuple(levels),
            Written(memory),
        )


def keep_trees(points: Any, plan: TreePlan) -> KeptTrees:
    """Build the trees of all slabs on the plan's first device, and copy them to host memory."""
    bounds, device = cut(plan.n, plan.point_slab), plan.devices[0]
    sizes = [here.stop - here.start for here in bounds]
    double = plan.held == "float64"
    lines = [device_tree_bytes(n, plan.d, leaf_of(n, plan.leaf), 8 if double else 4) // LINE for n in sizes]
    ends = np.cumsum(lines).tolist()
    memory = np.empty((ends[-1], LINE), np.uint8)
    places: list[slice | None] = []
    with on(device), Collector(device) as collector:
        for here, end, count in zip(bounds, ends, lines, strict=True):
            tree = build_checked(points[here], plan, device, here.start)
            collector.arrive()  # at most two trees are on the device at once
            if tree is None:
                places.append(None)
                continue
            places.append(slice(end - count, end))
            at = (end - count) * LINE
            for part in (tree.ids, tree.rows, tree.boxes):
                collector.collect(part, memory.reshape(-1)[at : (at := at + part.nbytes)])
            del tree, part
        collector.arrive()
    dtype = torch.float64 if double else torch.float32
    return KeptTrees(memory, places, sizes, plan.d, plan.leaf, dtype)


@dataclass(frozen=True)
class PreparedTrees:
    """Points and the trees built from them, on devices or in host memory.

    Attributes
    ----------
    points : array or tensor of shape (n, d)
        The original rows, on their original device.
    slab : int
        The number of points per tree; n for a single tree.
    trees : list of DeviceTree or None
        The tree of all points on each of the plan's devices; None if a point has values that a tree cannot compare. The
        list is empty if the points are searched slab by slab.
    kept : KeptTrees, optional
        The trees of all slabs in host memory. None if there is only one tree, or if each search builds the trees of
        slabs anew.
    """

    points: Any
    slab: int
    trees: list[DeviceTree | None]
    kept: KeptTrees | None = None

    def arriving(self, plan: TreePlan, at: int) -> Generator[DeviceTree | None, None, None]:
        """Yield the tree of each slab on device `at` of the plan; a tree is valid until the next one is requested."""
        if plan.point_slab == plan.n and self.trees:
            yield self.trees[at]
        elif plan.kept_bytes and plan.point_slab == self.slab and self.kept is not None:
            yield from self.kept.arriving(plan.devices[at])
        else:
            for here in cut(plan.n, plan.point_slab):
                yield build_checked(self.points[here], plan, plan.devices[at], here.start)


def prepare(points: Any, plan: TreePlan, progress: ProgressLike = None) -> PreparedTrees:
    """Build the tree on each of the plan's devices, or the trees of slabs if the plan keeps them in host memory.

    Unless each search builds the trees of its slabs, the host waits until the values of the points have been checked.
    """
    if plan.point_slab < plan.n:
        return PreparedTrees(points, plan.point_slab, [], keep_trees(points, plan) if plan.kept_bytes else None)

    def build(at: int) -> DeviceTree | None:
        return build_checked(points, plan, plan.devices[at], 0)

    trees = side_by_side(a_thread_each(plan.devices), plan.devices, len(plan.devices), build)
    return PreparedTrees(points, plan.n, trees)


def unprepared(points: Any, plan: TreePlan) -> PreparedTrees:
    """Return points without trees; each search then builds the trees, and does not keep them."""
    return PreparedTrees(points, plan.point_slab, [])
