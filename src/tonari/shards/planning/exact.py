"""Plan exact builds, which compare each pair of slabs once, or once in each direction."""

from __future__ import annotations

from tonari.core.errors import BudgetExceeded, Unsupported
from tonari.core.plan import Plan
from tonari.core.units import MIB
from tonari.exact.cpu.across import plan_across
from tonari.exact.plan import ExactPlan
from tonari.shards import tuning
from tonari.shards.plan import ShardPlan
from tonari.shards.planning.sizes import Needs, Sizes, most_rows, too_little


def exact(sizes: Sizes, budget: int) -> ShardPlan:
    """Plan an exact build that compares each pair of slabs once or twice, whichever is expected to be faster."""
    made = _exact_from_each_side(sizes, budget)
    if made.shards == 1 or sizes.devices or sizes.queries is not None:
        return made
    try:
        pairs = _exact_pairs(sizes, budget)
    except (BudgetExceeded, Unsupported):
        return made
    return min(made, pairs, key=lambda plan: plan.seconds)


def _exact_from_each_side(sizes: Sizes, budget: int) -> ShardPlan:
    n, least = sizes.source.n, max(sizes.k + 1, tuning.LEAST_ROWS)

    def needs(rows: int) -> Needs:
        block = min(rows, sizes.asked)
        return Needs(sizes, rows_held=sizes.sets * (block + rows), lists_held=3 * block)

    def engine(rows: int, memory: int) -> Plan | None:
        """Plan the search for the neighbours of one slab's rows in another slab.

        Return None if memory is too small for it.
        """
        memory -= needs(rows).beside_engine
        try:
            m = min(rows, sizes.asked)
            plan = sizes.plan_search("exact", rows, m=m, self_join=False, memory=memory) if memory > 0 else None
        except BudgetExceeded:
            return None
        return None if plan is None or plan.packs_anew else plan

    rows = most_rows(lambda rows: engine(rows, budget) is not None, n, least)
    if rows == 0:
        enough = budget
        while engine(least, enough) is None:
            enough += enough // 8 + MIB
        raise too_little("exact", budget, enough, least)
    slabs = -(-n // rows)
    plan, even = engine(rows, budget), -(-n // slabs)
    assert plan is not None
    rows, plan = (even, other) if (other := engine(even, budget)) is not None else (rows, plan)
    blocks = -(-sizes.asked // rows)
    return needs(rows).plan(
        "exact",
        budget,
        plan.total_bytes,
        plan.seconds * slabs * blocks,
        rows=rows,
        shards=slabs,
        block=rows if sizes.queries is None else -(-sizes.asked // blocks),
        disk_bytes=sizes.lists_bytes(sizes.asked),
        rows_read=sizes.asked + n * blocks,
    )


def _exact_pairs(sizes: Sizes, budget: int) -> ShardPlan:
    """Plan an exact graph on the CPU that compares each pair of slabs once, and uses every distance for both rows."""
    n, least = sizes.source.n, max(sizes.k + 1, tuning.LEAST_ROWS)

    def needs(rows: int) -> Needs:
        return Needs(sizes, rows_held=2 * rows, lists_held=10 * rows)

    def engine(rows: int) -> ExactPlan:
        memory = max(1, budget - needs(rows).beside_engine)
        return plan_across(sizes.problem(min(n, 2 * rows), self_join=True, memory=memory))

    def fits(rows: int) -> bool:
        try:
            engine(rows)
        except BudgetExceeded:
            return False
        return True

    rows = most_rows(fits, -(-n // 2), least) if n >= 2 * least else 0
    if rows == 0:
        raise BudgetExceeded(f"memory={budget}: too little for two slabs of {least} rows that share products")
    shards = -(-n // rows)
    rows = -(-n // shards)
    plan = engine(rows)
    return needs(rows).plan(
        "exact-pairs",
        budget,
        plan.total_bytes,
        plan.seconds * (n / plan.n) ** 2,
        rows=rows,
        shards=shards,
        block=rows,
        disk_bytes=5 * sizes.lists_bytes(n),
        rows_read=n * shards,
    )
