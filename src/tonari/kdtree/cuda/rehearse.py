"""Rehearse a search with k-d trees on CUDA, to record all kernels that the builds and searches launch."""

from __future__ import annotations

from typing import Any

import torch

from tonari.core.results.neighbors import Neighbors
from tonari.core.rows.slices import cut
from tonari.cuda.compiling.rehearsal import numbers_from, to_visit
from tonari.kdtree import tuning
from tonari.kdtree.cuda.blocks import new_lists
from tonari.kdtree.cuda.build import build_on_device
from tonari.kdtree.cuda.search import TreeSearch, order_of, walk
from tonari.kdtree.cuda.tree import DeviceTree, leaf_of
from tonari.kdtree.papers.cuda.buffered import rehearse_rounds
from tonari.kdtree.plan import TreePlan


def rehearse_tree(plan: TreePlan, dtype: str, *, self_join: bool) -> None:
    """Build a tree without data for every size of slab in the plan, and search it with every size of query block.

    Parameters
    ----------
    dtype : str
        The dtype of the points.
    """
    m = -(-plan.m // len(plan.devices))
    for n in dict.fromkeys(slab.stop - slab.start for slab in cut(plan.n, plan.point_slab)):
        points = torch.empty((n, plan.d), dtype=getattr(torch, dtype), device="meta")
        tree = build_on_device(points, leaf=leaf_of(n, plan.leaf), double=plan.held == "float64")
        for rows in dict.fromkeys(here.stop - here.start for here in cut(m, plan.query_block)):
            _search(tree, rows, plan, self_join)


def _search(tree: DeviceTree, m: int, plan: TreePlan, self_join: bool) -> None:
    """Launch the search of a block of queries, in steps, as `blocks.py` does."""
    k = min(plan.k, tree.n)
    queries = torch.empty((m, plan.d), dtype=tree.rows.dtype, device="meta")
    points = self_join and m == tree.n == plan.n
    order = order_of(queries, tree, plan.metric) if plan.sort and not points else numbers_from(0, m, "meta")
    own = numbers_from(0, m, "meta") if self_join else None
    lists: Neighbors = new_lists(plan, m, k, queries.device)
    search = TreeSearch(queries, tree, k, plan.metric, lists, own)
    if plan.traversal == "buffered":
        rehearse_rounds(search, order, buffer=plan.buffer)
        return
    given_up: Any = torch.empty(m, dtype=torch.bool, device="meta")
    for step in to_visit(cut(m, tuning.FIRST_STEP), queries.device):
        walk(search, order[step], most_visits=plan.most_visits, given_up=given_up)
