"""The rehearsal of a k-d tree compiles exactly the kernels that building and searching it launch."""

from __future__ import annotations

import pytest

from tests.helpers import checks, plans
from tests.helpers.devices import HAS_CUDA, HAS_TORCH, needs_torch
from tests.helpers.gpu_checks import tensor_of
from tests.helpers.tree_search import DEVICE, plan_for

pytestmark = [needs_torch]
if HAS_TORCH:
    from tests.helpers.launches import launched
    from tonari.cuda.compiling import ahead
    from tonari.cuda.compiling.rehearsal import Card, rehearsing
    from tonari.kdtree.cuda import dispatch
    from tonari.kdtree.cuda.dispatch import rehearse_tree


@pytest.mark.parametrize("self_join", [False, True])
def test_a_rehearsal_launches_what_a_search_launches(self_join: bool) -> None:
    points = checks.gaussian(130, 2)
    queries = points if self_join else checks.gaussian(3, 2, 1)
    plan = plan_for(queries, points, 3)
    there = tensor_of(points).to(DEVICE)
    with launched() as seen:
        asked = there if self_join else tensor_of(queries).to(DEVICE)
        dispatch.search_once(asked, there, plan, self_join=self_join, progress=False)
    with rehearsing(ahead.card_of(DEVICE) if HAS_CUDA else Card((0, 0), 1)) as rehearsal:
        rehearse_tree(plan, plan.dtype, self_join=self_join)
    assert set(seen) == set(rehearsal.calls)


def test_a_tree_of_many_points_has_one_variant_of_each_kernel() -> None:
    """Each variant would be compiled at the first search."""
    n = 10**6
    plan = plans.tree(n, n, 3, 15, self_join=True, devices=("cuda:0",), free_bytes=10**11)
    with rehearsing(Card((9, 0), 132)) as rehearsal:
        rehearse_tree(plan, "float32", self_join=True)
    names = [call.name for call in rehearsal.calls.values()]
    assert [name for name in names if names.count(name) > 1] == ["halve_kernel"] * 5  # one for each level of a node
    assert {"spread_kernel", "key_kernel"} <= set(names)
