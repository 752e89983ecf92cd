"""Budgets under which a build takes several shards, on any processor."""

from __future__ import annotations

import re
from typing import Any

from tonari.core.errors import BudgetExceeded
from tonari.shards.plan import Sizes, plan_build
from tonari.shards.source import as_source


def tight_memory(
    source: Any,
    k: int,
    method: str = "exact",
    *,
    metric: str = "euclidean",
    recall: float | None = None,
    shards: int = 3,
    queries: Any = None,
) -> int:
    """Return a budget, in bytes, within which one thread builds a graph of the source in `shards` shards or more.

    With queries: a budget within which it searches the source for them.
    """
    m = None if queries is None else as_source(queries).n
    sizes = Sizes(as_source(source), k, metric, recall, (), 1, m)
    try:
        plan_build(sizes, method, 1)
    except BudgetExceeded as error:
        enough = int(re.search(r"needs at least (\d+) bytes", str(error)).group(1))  # type: ignore[union-attr]
    for memory in range(enough * 3 // 4, 2 * enough, 1 << 16):  # what it says is enough may be enough for all rows
        try:
            plan = plan_build(sizes, method, memory)
        except BudgetExceeded:
            continue
        assert plan.shards >= shards, plan
        return memory
    raise AssertionError(f"{method}: not even {2 * enough} bytes")
