"""The plan of a build: its route, the rows of a shard, and its host memory, device memory and disk space."""

from __future__ import annotations

import dataclasses
import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tonari.core.errors import BudgetExceeded, Unsupported
from tonari.core.host_memory import free_host_memory
from tonari.core.neighbors import index_dtype
from tonari.core.plan import Plan, table
from tonari.core.problem import Problem
from tonari.core.units import MIB
from tonari.cuda.memory import available
from tonari.exact.cpu.across import plan_across
from tonari.exact.plan import ExactPlan
from tonari.graph.directory import value_dtype
from tonari.methods.registry import method_for
from tonari.metrics import get_metric
from tonari.metrics.problem import make_problem
from tonari.nn_descent.entries import MOST_POINTS
from tonari.shards import tuning
from tonari.shards.source import Source

METHODS = ("auto", "exact", "clusters", "ggm")
_LOCKED = 2  # page-locked memory is of powers of two: at most so many times what is asked for
_CENTRE_BYTES = 64  # of each dimension
_GAP_BYTES = 64  # of two centres


@dataclass(frozen=True, kw_only=True)
class ShardPlan:
    """Every choice for a build, made before it starts.

    Attributes
    ----------
    route : "exact", "exact-pairs", "clusters" or "ggm"
    rows : int
        Largest number of rows in a slab or shard.
    shards : int
        The number of slabs or shards; for "clusters" the expected number.
    block : int
        Rows of the result that one task merges.
    clusters : int
        Number of centres that assign rows to shards; 0 for the other routes.
    group : int
        Largest number of slabs in a group, whose lists stay in memory while they are compared with another group
        (pair_rounds.py).
    staged_bytes : int
        Page-locked host memory for the rows of the next task; 0 if these rows are stored on the device.
    engine_bytes : int
        The part of the memory that a search or a graph of one shard may use.
    host_bytes, device_bytes, disk_bytes : int
        The largest use of host memory by each worker, beyond the interpreter and the system's file cache; of device
        memory on each device; and of disk space in the directory.
    seconds : float
        Expected duration on one worker.
    """

    route: str
    rows: int
    shards: int
    block: int
    clusters: int
    staged_bytes: int
    engine_bytes: int
    host_bytes: int
    device_bytes: int
    disk_bytes: int
    seconds: float
    group: int = 1

    @classmethod
    def of_manifest(cls, facts: dict[str, Any]) -> ShardPlan:
        """Make a plan from the fields of a manifest; `group` is 1 in manifests of earlier releases, which lack it."""
        missing = {"group": 1}
        return cls(**{one.name: facts.get(one.name, missing.get(one.name, 0)) for one in dataclasses.fields(cls)})

    @property
    def is_exact(self) -> bool:
        """Whether no neighbour is missed."""
        return self.route in ("exact", "exact-pairs")

    @property
    def reads_ahead(self) -> bool:
        """Whether rows are read while others are computed; not on the CPU, where larger shards save more time."""
        return self.device_bytes > 0

    @property
    def rows_read(self) -> int:
        """The largest number of rows in the block that is read, on a device while the previous block is computed."""
        return self.rows if self.is_exact else self.block

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as plain values, for JSON."""
        return dataclasses.asdict(self)

    def __str__(self) -> str:
        return table(self.as_dict())


@dataclass(frozen=True)
class Sizes:
    """The sizes on which plans depend."""

    source: Source
    k: int
    metric: str
    recall: float | None
    devices: tuple[str, ...]
    threads: int | None
    queries: int | None = None  # of a search; None for a graph
    workers: int = 1  # tasks that run at the same time

    @property
    def asked(self) -> int:
        """The number of rows of the result."""
        return self.source.n if self.queries is None else self.queries

    @property
    def sets(self) -> int:
        """The number of blocks of rows in memory: the current one and, on a device, the one being read."""
        return 2 if self.devices else 1

    @property
    def entry_bytes(self) -> int:
        """Bytes of a neighbour."""
        return int(index_dtype(self.source.n).itemsize + value_dtype(self.source.dtype).itemsize)

    def staged_bytes(self, rows: int) -> int:
        """Bytes of page-locked memory, in powers of two, for arriving rows and for rows that leave at the same time."""
        return 2 << (rows * self.source.row_bytes - 1).bit_length() if rows else 0

    def may_stage(self, rows: int) -> bool:
        """Whether the host has enough page-locked memory for every device."""
        return len(self.devices) * self.staged_bytes(rows) <= free_host_memory() // tuning.STAGED_SHARE

    def lists_bytes(self, rows: int) -> int:
        """Bytes of the lists of some rows."""
        return rows * self.k * self.entry_bytes

    def made(
        self, name: str, n: int, *, self_join: bool, memory: int | None = None, m: int | None = None, **given: Any
    ) -> Plan:
        """Plan a search of n rows for n or m rows by a method, on one worker."""
        problem = self.problem(n, self_join=self_join, memory=memory, m=m)
        plan: Plan = method_for(name, "cuda" if self.devices else "cpu").plan(problem, **given)
        return plan

    def descent(self, n: int, **given: Any) -> Plan:
        """Plan a graph of n rows by NN-Descent without a check of memory, which the caller makes."""
        return self.made("nn-descent", n, self_join=True, recall=self.recall, free_bytes=sys.maxsize, **given)

    def problem(self, n: int, *, self_join: bool, memory: int | None = None, m: int | None = None) -> Problem:
        """Return the problem of a search of n rows for n or m rows, on one worker."""
        sizes = n, n if m is None else m, self.source.d, min(self.k, n - (self.queries is None))
        return make_problem(
            *sizes,
            dtype=self.source.dtype,
            metric=self.metric,
            self_join=self_join,
            devices=self.devices[:1],
            host_points=False,
            host_queries=False,
            threads=self.threads,
            memory=memory,
        )


@dataclass(frozen=True)
class Needs:
    """The memory of a worker in addition to the engine: rows on its device, and lists in host memory."""

    sizes: Sizes
    rows_held: int
    lists_held: int
    rows_staged: int = 0  # beside them, in page-locked host memory

    @property
    def rows_bytes(self) -> int:
        """Bytes of the rows, on the device or in host memory."""
        return self.rows_held * (self.sizes.source.row_bytes + 8)

    @property
    def beside_engine(self) -> int:
        """The part of the budget that is not available to the engine; on CUDA, lists in host memory do not count."""
        return self.rows_bytes + (0 if self.sizes.devices else self.sizes.lists_bytes(self.lists_held))

    def plan(
        self, route: str, budget: int, engine: int, seconds: float, *, rows_read: int, disk_bytes: int, **fields: int
    ) -> ShardPlan:
        """Return the plan of a route from the bytes and seconds of its searches and graphs."""
        sizes, lists = self.sizes, self.sizes.lists_bytes(self.lists_held)
        taken, on_cuda = self.beside_engine + engine, bool(sizes.devices)
        staged = sizes.staged_bytes(self.rows_staged)
        return ShardPlan(
            route=route,
            staged_bytes=staged,
            engine_bytes=budget - self.beside_engine,
            host_bytes=lists + tuning.STAGED_BYTES + staged if on_cuda else taken,
            device_bytes=taken if on_cuda else 0,
            disk_bytes=disk_bytes + MIB,
            seconds=(seconds + rows_read * sizes.source.row_bytes / tuning.READ_RATE) / max(1, len(sizes.devices)),
            **{"clusters": 0} | fields,
        )


def plan_build(sizes: Sizes, method: str, memory: int | None) -> ShardPlan:
    """Plan a build; "auto" takes the route with the least expected time.

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
    """Return the bytes of its device, or of the host, that a worker may use."""
    if sizes.devices:
        free = available(sizes.devices)
        return free if memory is None else min(memory, free)
    return free_host_memory() // 2 if memory is None else memory


def _exact(sizes: Sizes, budget: int) -> ShardPlan:
    """Plan an exact build that compares two slabs once or from each side, whichever is expected to be faster."""
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
        """Plan the search of one slab among another with all points packed once; None if memory is too short."""
        memory -= needs(rows).beside_engine
        try:
            m = min(rows, sizes.asked)
            plan = sizes.made("exact", rows, m=m, self_join=False, memory=memory) if memory > 0 else None
        except BudgetExceeded:
            return None
        return None if plan is None or plan.packs_anew else plan

    rows = _most_rows(lambda rows: engine(rows, budget) is not None, n, least)
    if rows == 0:
        enough = budget
        while engine(least, enough) is None:
            enough += enough // 8 + MIB
        raise _too_little("exact", budget, enough, least)
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
    """Plan a graph on the CPU that uses each product for both of its rows."""
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

    rows = _most_rows(fits, -(-n // 2), least) if n >= 2 * least else 0
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


def _clusters(sizes: Sizes, budget: int) -> ShardPlan:
    if get_metric(sizes.metric).descending:
        raise Unsupported(
            f"metric={sizes.metric!r}: method='clusters' needs rows that are near each other's neighbours; "
            "use method='ggm' or 'exact'"
        )
    n, least = sizes.source.n, max(4 * (sizes.k + 1), tuning.LEAST_ROWS)

    def needs(rows: int) -> Needs:
        if not sizes.devices:  # what is written while the engine works on the next
            return Needs(sizes, rows_held=rows, lists_held=rows)
        # What is computed, what waits, and what is written.
        return Needs(sizes, **_waiting(rows, staged=staged), lists_held=_LOCKED * 3 * rows)

    def bytes_of(rows: int) -> int:
        return needs(rows).beside_engine + sizes.descent(rows).total_bytes

    whole = Needs(sizes, rows_held=n, lists_held=2 * n)
    if n <= MOST_POINTS and whole.beside_engine + sizes.descent(n).total_bytes <= budget:
        plan = sizes.descent(n)
        disk = sizes.lists_bytes(n)
        given = {"rows": n, "shards": 1, "block": n, "disk_bytes": disk, "rows_read": 2 * n}
        return whole.plan("clusters", budget, plan.total_bytes, plan.seconds, clusters=1, **given)
    staged = True
    rows = _most_rows(lambda rows: bytes_of(rows) <= budget, min(n, MOST_POINTS), least)
    if not sizes.may_stage(rows):
        staged = False
        rows = _most_rows(lambda rows: bytes_of(rows) <= budget, min(n, MOST_POINTS), least)
    if rows == 0:
        raise _too_little("clusters", budget, bytes_of(least), least)
    shards = max(2, math.ceil(n * tuning.COPIES / (tuning.ROOM * rows)))
    clusters = min(max(tuning.CENTRES[0], tuning.CENTRES_PER_SHARD * shards), tuning.CENTRES[1])
    if not sizes.devices:  # centres, sums of their rows as float64, and what computes these take half of the memory
        clusters = min(clusters, budget // (_CENTRE_BYTES * sizes.source.d), math.isqrt(budget // _GAP_BYTES))
    plan = sizes.descent(rows)
    return needs(rows).plan(
        "clusters",
        budget,
        plan.total_bytes,
        plan.seconds * tuning.COPIES * n / rows,
        rows=rows,
        shards=shards,
        block=max(1, min(n, tuning.MOST_BLOCK, rows // sizes.sets)),
        clusters=max(min(clusters, n // 8), min(2 * shards, n // 2)),
        disk_bytes=math.ceil(sizes.lists_bytes(n) * (1 + tuning.COPIES) + tuning.COPIES * 8 * n),
        rows_read=math.ceil(n * (2 + tuning.COPIES)),
    )


def _ggm(sizes: Sizes, budget: int) -> ShardPlan:
    n, least = sizes.source.n, max(4 * (sizes.k + 1), tuning.LEAST_ROWS)
    whole = Needs(sizes, rows_held=n, lists_held=2 * n)

    def needs(rows: int, group: int = tuning.MOST_GROUP) -> Needs:
        if not sizes.devices:
            return Needs(sizes, rows_held=2 * rows, lists_held=10 * rows)
        # Of two groups; and of two slabs each what is computed, what waits, and what is merged, in page-locked memory.
        return Needs(sizes, **_waiting(2 * rows, staged=staged), lists_held=(2 * group + _LOCKED * 6) * rows)

    def bytes_of(rows: int) -> int:
        plans = sizes.descent(rows), sizes.descent(2 * rows, start="graph")
        return needs(rows).beside_engine + max(plan.total_bytes for plan in plans)

    if n <= MOST_POINTS and whole.beside_engine + sizes.descent(n).total_bytes <= budget:
        plan = sizes.descent(n)
        given = {"rows": n, "shards": 1, "block": n, "disk_bytes": 3 * sizes.lists_bytes(n), "rows_read": 2 * n}
        return whole.plan("ggm", budget, plan.total_bytes, plan.seconds, **given)
    # Two shards at least, each with more than k rows.
    most = min(n, MOST_POINTS) // 2
    staged = True
    rows = _most_rows(lambda rows: bytes_of(rows) <= budget, most, least) if n >= 2 * least else 0
    if not sizes.may_stage(2 * rows):
        staged = False
        rows = _most_rows(lambda rows: bytes_of(rows) <= budget, most, least) if n >= 2 * least else 0
    if rows == 0:
        raise _too_little("ggm", budget, bytes_of(least), least)
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
    """Return the largest number of slabs per group at which all workers have equally many pairs in a round."""
    if not sizes.devices:  # lists are within the budget
        return 1
    for size in range(tuning.MOST_GROUP, 1, -1):
        pairs = -(-shards // size) // 2
        if pairs and pairs % sizes.workers == 0:
            return size
    return 1


_ROUTES: dict[str, Callable[[Sizes, int], ShardPlan]] = {"exact": _exact, "clusters": _clusters, "ggm": _ggm}


def _waiting(rows: int, *, staged: bool) -> dict[str, int]:
    """Return the memory of the current rows on a device, and of the rows of the next task."""
    return {"rows_held": rows, "rows_staged": rows} if staged else {"rows_held": 2 * rows}


def _most_rows(fits: Callable[[int], bool], n: int, least: int) -> int:
    """Return the largest number of rows that fit, from `least` to n; 0 if `least` rows do not fit."""
    low, high = min(least, n), n
    if not fits(low):
        return 0
    while low < high:
        middle = (low + high + 1) // 2
        if fits(middle):
            low = middle
        else:
            high = middle - 1
    return low


def _too_little(name: str, budget: int, enough: int, rows: int) -> BudgetExceeded:
    return BudgetExceeded(f"memory={budget}: method={name!r} needs at least {enough} bytes, for {rows} rows at a time")
