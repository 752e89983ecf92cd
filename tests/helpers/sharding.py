"""Budgets under which a build takes several shards, on any processor."""

from __future__ import annotations

from typing import Any

from tonari.core.errors import BudgetExceeded
from tonari.shards.plan import Sizes, plan_build
from tonari.shards.source import as_source


def tight_memory(source: Any, k: int, method: str = "exact", *, recall: float | None = None, shards: int = 3) -> int:
    """Return a budget, in bytes, within which one thread builds a graph of the source in `shards` shards or more."""
    sizes = Sizes(as_source(source), k, "euclidean", recall, (), 1)
    memory = 1 << 20
    while True:
        try:
            plan = plan_build(sizes, method, memory)
        except BudgetExceeded:
            memory += 1 << 16
            continue
        assert plan.shards >= shards, plan
        return memory
