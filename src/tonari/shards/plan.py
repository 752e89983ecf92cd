"""The plan of a build: its route, the rows of a shard, and what it needs of host, device and disk."""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tonari.core.errors import BudgetExceeded, Unsupported
from tonari.core.neighbors import index_dtype
from tonari.core.plan import Plan, table
from tonari.core.units import MIB
from tonari.cuda.memory import available
from tonari.graph.directory import value_dtype
from tonari.methods.registry import method_for
from tonari.metrics.problem import make_problem
from tonari.shards.source import Source

METHODS = ("auto", "exact", "clusters", "ggm")
COPIES = 2.2  # shards that a row is in, expected of the route by clusters; what it is, is found while it runs
_ROOM = 0.9  # of a shard's rows, that the expected largest shard may take
_READ_RATE = 1.5e9  # bytes a second that come from files; a guess, for the choice of a route
_LEAST_ROWS = 256
_MOST_BLOCK = 1 << 20  # rows of the result that are joined at a time
_PER_CLUSTER = 500  # rows per centre, about; between these numbers of centres:
_CLUSTERS = (64, 2048)
_CENTRE_BYTES = 64  # of each dimension


@dataclass(frozen=True, kw_only=True)
class ShardPlan:
    """Every choice of a build that is made before it starts.

    Attributes
    ----------
    route : "exact", "clusters" or "ggm"
    rows : int
        Most rows of a slab or shard.
    shards : int
        Slabs or shards; expected, for "clusters".
    block : int
        Rows of the result that are joined at a time.
    clusters : int
        Centres by which rows are dealt to shards; 0 for the other routes.
    engine_bytes : int
        What a search or a graph of a shard may take of these at a time.
    host_bytes, device_bytes, disk_bytes : int
        The most that is needed at a time: of host memory by each worker, beyond the interpreter and what the system
        keeps of files; of device memory on each device; and in the directory.
    seconds : float
        Expected duration on one worker.
    """

    route: str
    rows: int
    shards: int
    block: int
    clusters: int
    engine_bytes: int
    host_bytes: int
    device_bytes: int
    disk_bytes: int
    seconds: float

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as plain values, for JSON."""
        return dataclasses.asdict(self)

    def __str__(self) -> str:
        return table(self.as_dict())


@dataclass(frozen=True)
class Sizes:
    """What plans depend on."""

    source: Source
    k: int
    metric: str
    recall: float | None
    devices: tuple[str, ...]
    threads: int | None

    @property
    def entry_bytes(self) -> int:
        """Bytes of a neighbour."""
        return int(index_dtype(self.source.n).itemsize + value_dtype(self.source.dtype).itemsize)

    def lists_bytes(self, rows: int) -> int:
        """Bytes of the lists of some rows."""
        return rows * self.k * self.entry_bytes

    def made(self, name: str, n: int, *, self_join: bool, memory: int | None = None, **given: Any) -> Plan:
        """Plan a search of n rows for n rows by a method, on one worker."""
        devices = self.devices[:1]
        sizes = n, n, self.source.d, min(self.k, n - 1)
        facts: dict[str, Any] = {"dtype": self.source.dtype, "metric": self.metric, "self_join": self_join}
        facts["memory"] = memory
        problem = make_problem(*sizes, **facts, devices=devices, threads=self.threads)
        plan: Plan = method_for(name, "cuda" if devices else "cpu").plan(problem, **given)
        return plan


def plan_build(sizes: Sizes, method: str, memory: int | None) -> ShardPlan:
    """Plan a build; "auto" takes the route that is expected to be fastest.

    Raises
    ------
    BudgetExceeded
        Not even small shards fit the memory.
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
    """Return the bytes that a worker may use: of its device, or of the host."""
    if sizes.devices:
        free = available(sizes.devices)
        return free if memory is None else min(memory, free)
    return _free_host() // 2 if memory is None else memory


def _free_host() -> int:
    return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _exact(sizes: Sizes, budget: int) -> ShardPlan:
    source = sizes.source
    least = max(sizes.k + 1, _LEAST_ROWS)

    def host_bytes(rows: int) -> int:
        # Queries and the next ones; points and the next ones.
        held = 2 if source.is_mapped else 4
        return held * rows * source.row_bytes + 3 * sizes.lists_bytes(rows)

    def engine(rows: int, memory: int) -> Plan | None:
        """Plan a slab against another within a memory, all points packed once; None if that is too little."""
        memory -= 0 if sizes.devices else host_bytes(rows)
        try:
            plan = sizes.made("exact", rows, self_join=False, memory=memory) if memory > 0 else None
        except BudgetExceeded:
            return None
        return None if plan is None or plan.packs_anew else plan

    rows = _most_rows(lambda rows: engine(rows, budget) is not None, source.n, least)
    if rows == 0:
        enough = budget
        while engine(least, enough) is None:
            enough += enough // 8 + MIB
        raise _too_little("exact", budget, enough, least)
    slabs = -(-source.n // rows)
    rows = -(-source.n // slabs)
    plan = engine(rows, budget)
    assert plan is not None
    taken = plan.total_bytes + (0 if sizes.devices else host_bytes(rows))
    seconds = slabs * slabs * plan.seconds
    read = source.n * source.row_bytes * (slabs + 1)
    return ShardPlan(
        route="exact",
        rows=rows,
        shards=slabs,
        block=rows,
        clusters=0,
        engine_bytes=budget - (0 if sizes.devices else host_bytes(rows)),
        host_bytes=host_bytes(rows) if sizes.devices else taken,
        device_bytes=taken if sizes.devices else 0,
        disk_bytes=sizes.lists_bytes(source.n) + MIB,
        seconds=seconds / max(1, len(sizes.devices)) + read / _READ_RATE,
    )


def _clusters(sizes: Sizes, budget: int) -> ShardPlan:
    source = sizes.source
    least = max(4 * (sizes.k + 1), _LEAST_ROWS)

    def host_bytes(rows: int) -> int:
        return 2 * rows * (source.row_bytes + 8) + 3 * sizes.lists_bytes(rows)  # this shard and the next; lists

    def bytes_of(rows: int) -> int:
        plan = sizes.made("nn-descent", rows, self_join=True, recall=sizes.recall)
        return plan.total_bytes + (0 if sizes.devices else host_bytes(rows))

    rows = _most_rows(lambda rows: bytes_of(rows) <= budget, source.n, least)
    if rows == 0:
        raise _too_little("clusters", budget, bytes_of(least), least)
    shards = 1 if rows >= source.n else math.ceil(source.n * COPIES / (_ROOM * rows))
    copies = COPIES if shards > 1 else 1.0
    clusters = 1 if shards == 1 else min(max(_CLUSTERS[0], 16 * shards, source.n // _PER_CLUSTER), _CLUSTERS[1])
    if not sizes.devices:  # centres, sums of their rows as float64, and what computes these take half of the memory
        clusters = min(clusters, budget // (_CENTRE_BYTES * source.d))
    clusters = max(min(clusters, source.n // 8), min(2 * shards, source.n // 2))
    of_a_row = sizes.made("nn-descent", rows, self_join=True, recall=sizes.recall).seconds / rows
    taken = bytes_of(rows)
    block = max(1, min(source.n, _MOST_BLOCK, rows))
    lists = sizes.lists_bytes(source.n)
    return ShardPlan(
        route="clusters",
        rows=rows,
        shards=shards,
        block=block,
        clusters=clusters,
        engine_bytes=budget - (0 if sizes.devices else host_bytes(rows)),
        host_bytes=host_bytes(rows) if sizes.devices else taken,
        device_bytes=taken if sizes.devices else 0,
        disk_bytes=math.ceil(lists + copies * (lists + 8 * source.n)) + MIB,
        seconds=of_a_row * copies * source.n / max(1, len(sizes.devices))
        + source.n * source.row_bytes * (2 + copies) / _READ_RATE,
    )


def _ggm(sizes: Sizes, budget: int) -> ShardPlan:
    source = sizes.source
    least = max(4 * (sizes.k + 1), _LEAST_ROWS)

    def host_bytes(rows: int) -> int:
        return 4 * rows * source.row_bytes + 8 * sizes.lists_bytes(rows)  # two shards and the next two; lists

    def bytes_of(rows: int) -> int:
        plan = sizes.made("nn-descent", 2 * rows, self_join=True, recall=sizes.recall, start="graph")
        return plan.total_bytes + (0 if sizes.devices else host_bytes(rows))

    whole = sizes.made("nn-descent", source.n, self_join=True, recall=sizes.recall)
    if whole.total_bytes + (0 if sizes.devices else host_bytes(source.n) // 2) <= budget:
        rows = source.n
    else:
        # Two shards at least, each with more than k rows.
        rows = _most_rows(lambda rows: bytes_of(rows) <= budget, source.n // 2, least) if source.n >= 2 * least else 0
        if rows == 0:
            raise _too_little("ggm", budget, bytes_of(least), least)
    shards = -(-source.n // rows)
    rows = -(-source.n // shards)
    one = sizes.made("nn-descent", rows, self_join=True, recall=sizes.recall)
    seconds, taken = shards * one.seconds, one.total_bytes + (0 if sizes.devices else host_bytes(rows))
    pairs = shards * (shards - 1) // 2
    if pairs:
        seconds += (
            pairs * sizes.made("nn-descent", 2 * rows, self_join=True, recall=sizes.recall, start="graph").seconds
        )
        taken = max(taken, bytes_of(rows))
    read = source.row_bytes * source.n * (2 + shards)
    return ShardPlan(
        route="ggm",
        rows=rows,
        shards=shards,
        block=rows,
        clusters=0,
        engine_bytes=budget - (0 if sizes.devices else host_bytes(rows)),
        host_bytes=host_bytes(rows) if sizes.devices else taken,
        device_bytes=taken if sizes.devices else 0,
        disk_bytes=4 * sizes.lists_bytes(source.n) + MIB,
        seconds=seconds / max(1, len(sizes.devices)) + read / _READ_RATE,
    )


_ROUTES: dict[str, Callable[[Sizes, int], ShardPlan]] = {"exact": _exact, "clusters": _clusters, "ggm": _ggm}


def _most_rows(fits: Callable[[int], bool], n: int, least: int) -> int:
    """Return the most rows, at least `least` and at most n, that fit; 0 if not even those do."""
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
