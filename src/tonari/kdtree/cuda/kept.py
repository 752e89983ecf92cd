"""Keep the trees of all slabs of points in host memory between searches.

    points  --build-->  tree  --collect.py-->  host memory      once, in `prepare`, while the next tree is built
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

from tonari.core.rows.slices import cut
from tonari.cuda.copying.collect import Collector
from tonari.cuda.copying.prefetch import slabs
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
