"""The arguments that determine a build's plan, the memory of a worker, and the largest number of rows that fits."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tonari.core.errors import BudgetExceeded
from tonari.core.plan import Plan
from tonari.core.problem import Problem
from tonari.core.process.host_memory import free_host_memory
from tonari.core.results.neighbors import index_dtype
from tonari.core.units import MIB
from tonari.graph.files.directory import value_dtype
from tonari.methods.registry import method_for
from tonari.metrics.problem import make_problem
from tonari.shards import tuning
from tonari.shards.plan import ShardPlan
from tonari.shards.source import Source

MEMBER_BYTES = 4  # size of a row number in the file of a shard's members, in bytes


@dataclass(frozen=True)
class Sizes:
    """The arguments of a build that determine its plan."""

    source: Source
    k: int
    metric: str
    recall: float | None
    devices: tuple[str, ...]
    threads: int | None
    queries: int | None = None  # number of queries; None for a graph
    workers: int = 1  # number of tasks that run at the same time, one per worker
    update: str | None = None  # the update of NN-Descent, such as "pull", if the caller named one

    @property
    def asked(self) -> int:
        """Number of rows in the result."""
        return self.source.n if self.queries is None else self.queries

    @property
    def sets(self) -> int:
        """The number of row blocks in memory: 1 on the CPU; 2 on a device, where the next block is read ahead."""
        return 2 if self.devices else 1

    @property
    def entry_bytes(self) -> int:
        """Bytes of one neighbour in a list: its index and its distance."""
        return int(index_dtype(self.source.n).itemsize + value_dtype(self.source.dtype).itemsize)

    def staged_bytes(self, rows: int) -> int:
        """Bytes of page-locked memory for the rows of two tasks, in pieces that are rounded up to powers of two."""
        size = self.source.row_bytes
        each = max(1, tuning.LOCKED_BYTES // size)
        whole, rest = divmod(rows, each)
        return 2 * (whole * _power_of_two(each * size) + _power_of_two(rest * size))

    def may_stage(self, rows: int) -> bool:
        """Return whether host memory suffices to page-lock 2 * `rows` rows for every device."""
        return len(self.devices) * self.staged_bytes(rows) <= free_host_memory() // tuning.STAGED_SHARE

    def lists_bytes(self, rows: int) -> int:
        """Return the size in bytes of the neighbour lists of a given number of rows."""
        return rows * self.k * self.entry_bytes

    def disk_of_clusters(self, copies: int, segment_rows: int, *, shards: int, clusters: int) -> int:
        """Return the peak disk space of a build by "clusters" whose shards have `copies` rows in total.

        The peak is at the first segment of the result, when the disk still has the lists and the members of all shards.
        Later, each segment replaces lists of at least as many rows. The samples with their true neighbours, and the
        centres with the distances between them, take room too.
        """
        assert self.recall is not None
        n, d = self.source.n, self.source.d
        sampled = min(n, 2 * sampled_rows(self.recall))
        truth = sampled * (self.source.row_bytes + truth_tasks(n, shards) * self.lists_bytes(1))
        centres = 8 * clusters * (d + clusters)
        return copies * (self.lists_bytes(1) + MEMBER_BYTES) + self.lists_bytes(segment_rows) + truth + centres

    def plan_search(
        self, name: str, n: int, *, self_join: bool, memory: int | None = None, m: int | None = None, **given: Any
    ) -> Plan:
        """Plan a search on one worker among n rows; the queries are the same rows or, if m is given, m other rows."""
        problem = self.problem(n, self_join=self_join, memory=memory, m=m)
        plan: Plan = method_for(name, "cuda" if self.devices else "cpu").plan(problem, **given)
        return plan

    def descent(self, n: int, **given: Any) -> Plan:
        """Plan a graph of n rows by NN-Descent, without checking whether it fits in memory."""
        given |= {"recall": self.recall, "free_bytes": sys.maxsize}
        if self.update is not None:
            given["update"] = self.update
        return self.plan_search("nn-descent", n, self_join=True, **given)

    def problem(self, n: int, *, self_join: bool, memory: int | None = None, m: int | None = None) -> Problem:
        """Describe a search on one worker among n rows.

        The queries are the same rows or, if m is given, m other rows.
        """
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


def _power_of_two(count: int) -> int:
    """Return a count rounded up to a power of two; 0 for 0.

    >>> [_power_of_two(count) for count in (0, 1, 5, 8)]
    [0, 1, 8, 8]
    """
    return 1 << (count - 1).bit_length() if count else 0


@dataclass(frozen=True)
class Needs:
    """The memory that a worker needs for rows and lists, in addition to the memory of a search or of NN-Descent."""

    sizes: Sizes
    rows_held: int
    lists_held: int
    rows_staged: int = 0  # number of rows that wait in page-locked host memory

    @property
    def rows_bytes(self) -> int:
        """Bytes that rows take: on the worker's device or, if it has none, in host memory."""
        return self.rows_held * (self.sizes.source.row_bytes + 8)

    @property
    def beside_engine(self) -> int:
        """Bytes of the budget that rows and, on the CPU, lists take; a search can use only the rest of the budget."""
        return self.rows_bytes + (0 if self.sizes.devices else self.sizes.lists_bytes(self.lists_held))

    def plan(
        self, route: str, budget: int, engine: int, seconds: float, *, rows_read: int, disk_bytes: int, **fields: int
    ) -> ShardPlan:
        """Make the plan of a route.

        Each of its searches or graphs takes `engine` bytes, and the whole build takes `seconds`.
        """
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


def most_rows(fits: Callable[[int], bool], n: int, least: int) -> int:
    """Return the largest number of rows, from `least` to n, that fits in memory; 0 if not even `least` rows fit."""
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


def too_little(name: str, budget: int, enough: int, rows: int) -> BudgetExceeded:
    return BudgetExceeded(f"memory={budget}: method={name!r} needs at least {enough} bytes, for {rows} rows at a time")


def sampled_rows(recall: float) -> int:
    """Return the size of the sample of rows that measures whether a build reaches its recall."""
    return max(1000, round(10 / (1 - recall)))


def truth_tasks(n: int, shards: int) -> int:
    """Return the number of tasks that share the search for the true neighbours of the sampled rows."""
    return min(shards, max(tuning.TRUTH_TASKS, -(-n // tuning.TRUTH_ROWS)))
