"""Points and their trees on CUDA devices, kept between searches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tonari import inputs
from tonari.core.progress import ProgressLike
from tonari.cuda.device_threads import a_thread_each, side_by_side
from tonari.cuda.devices import to_device
from tonari.kdtree.cuda.build import build_on_device
from tonari.kdtree.cuda.search import beyond
from tonari.kdtree.cuda.tree import DeviceTree, leaf_of
from tonari.kdtree.plan import TreePlan


@dataclass(frozen=True)
class PreparedTrees:
    """Points with a tree on each of the plan's devices.

    Attributes
    ----------
    points : array or tensor of shape (n, d)
        The original rows, on the device on which they were given.
    trees : list of DeviceTree, or None
        Empty if the trees are built slab by slab during the search; None if a point has values that a tree cannot
        compare.
    """

    points: Any
    trees: list[DeviceTree] | None


def prepare(points: Any, plan: TreePlan, progress: ProgressLike = None) -> PreparedTrees:
    """Build the tree on each of the plan's devices; blocks until the values of the points have been checked."""
    if plan.point_slab < plan.n:
        return PreparedTrees(points, [])
    return build_all(points, plan, 0)


def build_all(points: Any, plan: TreePlan, first: int) -> PreparedTrees:
    """Build a tree of all these points; messages number them from `first`."""

    def build(at: int) -> DeviceTree | None:
        rows = to_device(points, plan.devices[at])
        if bool(beyond(rows).any()):
            return None
        return build_on_device(rows, leaf=leaf_of(plan.n, plan.leaf), double=plan.held == "float64")

    trees = side_by_side(a_thread_each(plan.devices), plan.devices, len(plan.devices), build)
    if None in trees:
        inputs.check_values(points, "points", first=first, nonnegative=False)
        return PreparedTrees(points, None)
    return PreparedTrees(points, [tree for tree in trees if tree is not None])
