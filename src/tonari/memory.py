"""What a plan costs in memory, and what gives way when a budget is short."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tonari.results import index_dtype

MIB = 1 << 20
SURVIVOR_BYTES = 16
METADATA_BYTES = 24  # per packed point: its term, its errors, its share of the group's
STREAM_BLOCKS = 4  # blocks of queries per thread that share a slice of points packed for them alone
JOIN_GROWTH = 64 * MIB // SURVIVOR_BYTES  # survivors that active rows may hold beyond their first room, together
TILE = 32  # the widest tile of queries
ELEMENT_BYTES = {"int8": 1, "bfloat16": 2, "float32": 4}


@dataclass(frozen=True)
class Choice:
    """What gives way when memory is short."""

    query_block: int
    resident: bool
    active_rows: int


@dataclass(frozen=True)
class Problem:
    """What memory depends on besides."""

    n: int
    m: int
    d: int
    k: int
    dtype: np.dtype[Any]
    ladder: tuple[str, ...]
    threads: int
    chunk: int
    capacity: int
    splits: int

    def packed_bytes(self, precision: str) -> int:
        return self.n * packed_row_bytes(self.d, precision)

    @property
    def output_bytes(self) -> int:
        value = 8 if self.dtype == np.float64 else 4
        return self.m * self.k * (value + index_dtype(self.n).itemsize)

    def working_bytes(self, choice: Choice) -> int:
        """Blocks of queries in flight, slices packed on the way, active rows of a self-join, and small change."""
        row = max(self.capacity, 2 * self.k + 50) * SURVIVOR_BYTES + padded(self.d, "float32") * 4
        blocks = -(-self.m // choice.query_block)
        at_once = self.threads if choice.resident else STREAM_BLOCKS * self.threads
        rows = min(at_once, blocks * self.splits) * choice.query_block
        finest = "float32" if len(self.ladder) > 1 else self.ladder[0]
        slices = (
            self.threads * min(self.n, self.chunk) * (padded(self.d, finest) * ELEMENT_BYTES[finest] + METADATA_BYTES)
        )
        # Rows that climb meet points packed slice by slice, too.
        streams = not choice.resident or len(self.ladder) > 1
        join = min(choice.active_rows, self.n) * join_row_bytes(self.k) + JOIN_GROWTH * SURVIVOR_BYTES
        return 4 * MIB + rows * row + (slices if streams else 0) + (join if choice.active_rows else 0)

    def rest_bytes(self, choice: Choice) -> int:
        """All memory but the packed points."""
        return self.working_bytes(choice) + self.output_bytes

    def total_bytes(self, choice: Choice) -> int:
        return (self.packed_bytes(self.ladder[0]) if choice.resident else 0) + self.rest_bytes(choice)


def within(budget: int, problem: Problem, wish: Choice, fixed: set[str]) -> Choice:
    """The choice nearest to the wish that keeps the budget: first without a self-join, then with smaller blocks of
    queries, then with points packed slice by slice.
    """
    block = wish.query_block
    halves = [block]
    while halves[-1] > 1 and "query_block" not in fixed:
        halves.append(_smaller_block(halves[-1]))
    choices = [wish]
    if "active_rows" not in fixed:
        choices += [Choice(size, wish.resident, 0) for size in halves if size >= min(block, TILE)]
        choices += [Choice(size, False, 0) for size in halves if "resident" not in fixed]
    for choice in choices:
        if problem.total_bytes(choice) <= budget:
            return choice
    least = min(choices, key=problem.total_bytes)
    raise ValueError(
        f"a memory budget of {budget} bytes cannot hold this search: results take {problem.output_bytes} and work "
        f"{problem.total_bytes(least) - problem.output_bytes}; allow at least {problem.total_bytes(least)}, or search "
        "the queries in smaller batches"
    )


def packed_row_bytes(d: int, precision: str) -> int:
    """One packed point."""
    return padded(d, precision) * ELEMENT_BYTES[precision] + METADATA_BYTES


def padded(d: int, precision: str) -> int:
    """Dimensions after packing, at most."""
    run = {"int8": 4, "bfloat16": 32, "float32": 1}[precision]
    return -(-d // run) * run


def _smaller_block(block: int) -> int:
    """Half a block, in whole tiles while there are any."""
    half = block // 2
    return max(1, half // TILE * TILE if half > TILE else half)


def join_row_bytes(k: int) -> int:
    """First room of one active row: 2 (k + 1) + 24 survivors, and its state."""
    return (2 * (k + 1) + 24) * SURVIVOR_BYTES + 128
