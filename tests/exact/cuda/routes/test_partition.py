"""A search in one part has a progress bar of all pairs."""

from __future__ import annotations

from typing import Any

from tests.helpers import plans
from tests.helpers.devices import HAS_TORCH, needs_torch
from tonari.core.results.neighbors import Neighbors

if HAS_TORCH:
    from tonari.exact.cuda.routes.partition import search_whole

pytestmark = needs_torch


def test_the_part_is_all_and_progress_counts_its_pairs() -> None:
    plan = plans.exact_cuda(50, 20, 3, 2, devices=("cuda:0",), free_bytes=10**9)
    answer, seen, shown = (Neighbors(None, None), "report"), list[Any](), list[tuple[int, int]]()

    def search_part(queries: Any, prepared: Any, given: Any, place: Any, bar: Any) -> Any:
        seen.append((queries, prepared, given, place.self_join))
        bar.add(1000)
        return answer

    for self_join in (True, False):
        made = search_whole(search_part, "rows", "points", plan, self_join, lambda *pair: shown.append(pair))
        assert made is answer
    assert seen == [("rows", "points", plan, True), ("rows", "points", plan, False)]
    assert shown[-1] == (1000, 20 * 50)
