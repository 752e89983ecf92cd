"""The plan of a build: the route with the least expected time that fits the memory."""

from __future__ import annotations

from collections.abc import Callable

from tonari.core.errors import BudgetExceeded, Unsupported
from tonari.core.process.host_memory import free_host_memory
from tonari.cuda.memory import available
from tonari.shards.plan import ShardPlan
from tonari.shards.planning.approximate import clusters, ggm
from tonari.shards.planning.exact import exact
from tonari.shards.planning.sizes import Sizes

_ROUTES: dict[str, Callable[[Sizes, int], ShardPlan]] = {"exact": exact, "clusters": clusters, "ggm": ggm}


def plan_build(sizes: Sizes, method: str, memory: int | None) -> ShardPlan:
    """Plan a build; for "auto", choose the route with the least expected time.

    Raises
    ------
    BudgetExceeded
        Memory is too short even for small shards.
    Unsupported
        The method cannot build this graph.
    """
    if method != "auto":
        return _ROUTES[method](sizes, _budget(sizes, memory))
    names = ("exact",) if sizes.recall is None else ("clusters", "ggm", "exact")
    made, refused = [], []
    for name in names:
        try:
            made.append(_ROUTES[name](sizes, _budget(sizes, memory)))
        except (BudgetExceeded, Unsupported) as error:
            refused.append(error)
    if not made:
        raise refused[-1]
    return min(made, key=lambda plan: plan.seconds)


def _budget(sizes: Sizes, memory: int | None) -> int:
    """Return the bytes that a worker may use: of its device's memory or, if it has no device, of host memory."""
    if sizes.devices:
        free = available(sizes.devices)
        return free if memory is None else min(memory, free)
    return free_host_memory() // 2 if memory is None else memory
