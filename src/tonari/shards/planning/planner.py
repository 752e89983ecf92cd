"""The plan of a build: the route with the least expected time that fits the memory."""

from __future__ import annotations

import math
from collections.abc import Callable

from tonari.core.errors import BudgetExceeded, Unsupported
from tonari.core.plan import Plan
from tonari.core.process.host_memory import free_host_memory
from tonari.core.units import MIB
from tonari.cuda.memory import available
from tonari.exact.cpu.across import plan_across
from tonari.exact.plan import ExactPlan
from tonari.metrics import get_metric
from tonari.nn_descent.entries import MOST_POINTS
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


_LOCKED = 2  # maximum page-locked bytes allocated per byte requested, since sizes are rounded up to powers of two
_CENTRE_BYTES = 64  # bytes of memory per coordinate of a centre
_GAP_BYTES = 64  # bytes of memory per pair of centres, for their distance


def clusters(sizes: Sizes, budget: int) -> ShardPlan:
    if get_metric(sizes.metric).descending:
        raise Unsupported(
            f"metric={sizes.metric!r}: method='clusters' needs rows that are near each other's neighbours; "
            "use method='ggm' or 'exact'"
        )
    n, least = sizes.source.n, max(4 * (sizes.k + 1), tuning.LEAST_ROWS)

    def needs(rows: int) -> Needs:
        if not sizes.devices:  # the lists of one shard are written to the disk while the next shard is built
            return Needs(sizes, rows_held=rows, lists_held=rows)
        # Memory for: rows of the current and of the next task; lists that are being computed, that wait, or that are
        # being written. If several shards are read in one pass, their rows stay in memory, and the rows of each shard
        # are copied from them.
        memory = waiting(rows, staged=staged)
        memory["rows_held"] += rows // group if group > 1 else 0
        return Needs(sizes, **memory, lists_held=_LOCKED * 3 * (rows // group))

    def bytes_of(rows: int) -> int:
        return needs(rows).beside_engine + sizes.descent(rows // group).total_bytes

    def most_at_once(most: int) -> int:
        return most_rows(lambda rows: bytes_of(rows) <= budget, most, group * least)

    whole = Needs(sizes, rows_held=n, lists_held=2 * n)
    if n <= MOST_POINTS and whole.beside_engine + sizes.descent(n).total_bytes <= budget:
        plan = sizes.descent(n)
        disk = sizes.lists_bytes(n)
        fields = {"rows": n, "shards": 1, "block": n, "disk_bytes": disk, "rows_read": 2 * n}
        return whole.plan("clusters", budget, plan.total_bytes, plan.seconds, clusters=1, **fields)
    staged, group = True, 1
    rows = most_at_once(min(n, MOST_POINTS))
    if not sizes.may_stage(rows):
        staged = False
        rows = most_at_once(min(n, MOST_POINTS))
    if rows == 0:
        raise too_little("clusters", budget, bytes_of(least), least)
    group = _shards_at_once(sizes, rows, least)
    rows = (most_at_once(rows) or rows) // group
    shards = max(2, math.ceil(n * tuning.COPIES / (tuning.ROOM * rows)))
    clusters = min(max(tuning.CENTRES[0], tuning.CENTRES_PER_SHARD * shards), tuning.CENTRES[1])
    if not sizes.devices:  # centres, the float64 sums of their rows and buffers take at most half of the memory
        clusters = min(clusters, budget // (_CENTRE_BYTES * sizes.source.d), math.isqrt(budget // _GAP_BYTES))
    plan = sizes.descent(rows)
    block = max(1, min(n, tuning.MOST_BLOCK, rows // sizes.sets))
    segment = max(1, tuning.SEGMENT_ROWS // block)
    clusters = max(min(clusters, n // 8), min(2 * shards, n // 2))
    copies, last = math.ceil(tuning.COPIES * n), min(n, segment * block)
    return needs(group * rows).plan(
        "clusters",
        budget,
        plan.total_bytes,
        plan.seconds * tuning.COPIES * n / rows,
        rows=rows,
        shards=shards,
        block=block,
        clusters=clusters,
        disk_bytes=sizes.disk_of_clusters(copies, last, shards=shards, clusters=clusters),
        rows_read=math.ceil(n * (2 + tuning.COPIES)),
        group=group,
        segment=segment,
    )


def _shards_at_once(sizes: Sizes, rows: int, least: int) -> int:
    """Return the number of shards that a device reads in one pass over the source.

    `rows` is the total number of rows in all shards. Building and writing a shard should take about TASK_SECONDS,
    because a killed build repeats the shard that it was building.
    """
    if not sizes.devices:
        return 1
    written = sizes.lists_bytes(rows) * sizes.workers / tuning.WRITE_RATE
    return max(1, min(math.ceil((sizes.descent(rows).seconds + written) / tuning.TASK_SECONDS), rows // least))


def ggm(sizes: Sizes, budget: int) -> ShardPlan:
    n, least = sizes.source.n, max(4 * (sizes.k + 1), tuning.LEAST_ROWS)
    whole = Needs(sizes, rows_held=n, lists_held=2 * n)

    def needs(rows: int, group: int = tuning.MOST_GROUP) -> Needs:
        if not sizes.devices:
            return Needs(sizes, rows_held=2 * rows, lists_held=10 * rows)
        # Lists of the slabs in two groups; page-locked lists of three pairs of slabs: one being computed, one that
        # waits, and one being merged.
        return Needs(sizes, **waiting(2 * rows, staged=staged), lists_held=(2 * group + _LOCKED * 6) * rows)

    def bytes_of(rows: int) -> int:
        plans = sizes.descent(rows), sizes.descent(2 * rows, start="graph")
        return needs(rows).beside_engine + max(plan.total_bytes for plan in plans)

    if n <= MOST_POINTS and whole.beside_engine + sizes.descent(n).total_bytes <= budget:
        plan = sizes.descent(n)
        fields = {"rows": n, "shards": 1, "block": n, "disk_bytes": 3 * sizes.lists_bytes(n), "rows_read": 2 * n}
        return whole.plan("ggm", budget, plan.total_bytes, plan.seconds, **fields)
    # Use at least two slabs, each with more than k rows.
    most = min(n, MOST_POINTS) // 2
    staged = True
    rows = most_rows(lambda rows: bytes_of(rows) <= budget, most, least) if n >= 2 * least else 0
    if not sizes.may_stage(2 * rows):
        staged = False
        rows = most_rows(lambda rows: bytes_of(rows) <= budget, most, least) if n >= 2 * least else 0
    if rows == 0:
        raise too_little("ggm", budget, bytes_of(least), least)
    shards = -(-n // rows)
    rows = -(-n // shards)
    one, pair = sizes.descent(rows), sizes.descent(2 * rows, start="graph")
    pairs, group = shards * (shards - 1) // 2, _group(sizes, shards)
    return needs(rows, group).plan(
        "ggm",
        budget,
        max(one.total_bytes, pair.total_bytes),
        shards * one.seconds + pairs * pair.seconds,
        rows=rows,
        shards=shards,
        block=rows,
        disk_bytes=5 * sizes.lists_bytes(n),
        rows_read=n * (1 + shards),
        group=group,
    )


def _group(sizes: Sizes, shards: int) -> int:
    """Return the largest number of slabs per group for which all workers compare equally many pairs per round.

    It is 1 if no larger number has this property.
    """
    if not sizes.devices:  # on the CPU, the lists of a group count against the budget
        return 1
    for size in range(tuning.MOST_GROUP, 1, -1):
        pairs = -(-shards // size) // 2
        if pairs and pairs % sizes.workers == 0:
            return size
    return 1


def waiting(rows: int, *, staged: bool) -> dict[str, int]:
    """Return the numbers of rows in memory for the current and for the next task, as arguments of :class:`Needs`."""
    return {"rows_held": rows, "rows_staged": rows} if staged else {"rows_held": 2 * rows}


def devices_for_shards(sizes: Sizes, plan: ShardPlan) -> tuple[int, str]:
    """Return the number of devices that should build all shards' graphs in the shortest time, and the reason as text.

    The devices work in parallel, but one Python process launches the work of all, so a shard takes at least
    SHARED_SECONDS however many devices there are. Other routes than "clusters" use all devices.
    """
    most = len(sizes.devices)
    if plan.route != "clusters":
        return most, f"{most} of {most}: they share the slabs"
    if plan.shards == 1:
        return 1, f"1 of {most}: one shard has all rows"
    each = sizes.descent(plan.rows).seconds
    expected = [plan.shards * max(each / count, tuning.SHARED_SECONDS) for count in range(1, most + 1)]
    count = expected.index(min(expected)) + 1
    words = ", ".join(f"{seconds:.3g} s on {at}" for at, seconds in enumerate(expected, 1))
    return count, f"{count} of {most}: the graphs of the shards are expected to take {words}"


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
