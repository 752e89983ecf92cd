"""Points and their trees on CUDA devices, kept between searches."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

from tonari.core.process.progress import ProgressLike
from tonari.core.rows.slices import cut
from tonari.cuda.device_threads import a_thread_each, side_by_side
from tonari.kdtree.cuda.build import build_checked
from tonari.kdtree.cuda.kept import KeptTrees, keep_trees
from tonari.kdtree.cuda.tree import DeviceTree
from tonari.kdtree.plan import TreePlan


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
