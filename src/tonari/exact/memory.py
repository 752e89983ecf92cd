"""The memory that a plan of brute force on the CPU needs, and how the plan is reduced to fit a budget."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tonari.core.errors import BudgetExceeded
from tonari.core.results.neighbors import index_dtype
from tonari.core.units import MIB
from tonari.exact import tuning

SURVIVOR_BYTES = 16
METADATA_BYTES = 24  # bytes per packed point: its term of the score, its error bounds, and a share of its group's data
JOIN_BLOCK = 288  # rows in a block of a self-join; a multiple of every group and tile size
TILE = 32  # number of queries in the widest tile of any kernel
SAMPLE_ROWS = 2_048  # size of the sample for a pilot, and for the directions of a contracted form
CLUSTER_COLUMNS = 17  # columns that determine clusters: coordinates along 16 directions, and the length of the residual
GROUPS_FIT = 96  # slices are multiples of this number of points, and so contain whole groups for every kernel
ELEMENT_BYTES = {"int8": 1, "bfloat16": 2, "float32": 4}

_SMALL_CHANGE = 4 * MIB
_STATE_BYTES = 128  # bytes per row of a block: its thresholds, its norms, and the addresses of its survivors

# Entries of the smaller buffers, up to a page in size, that a row fills before it moves to one of full capacity.
_SMALL_BUFFERS = 2 * 256
_REFINING_BYTES = 64  # bytes per survivor of a row during its refinement
_QUERY_BYTES = 24  # bytes per query: its own row number, its status, and its position among the unfinished rows
_ROWS_IN_FORM = 64  # rows that a thread converts to float64 together before it packs them

# For points packed during the search: (blocks of queries per thread, parts of a slice), in descending order of memory.
_STREAM_SIZES = ((4, 1), (2, 1), (1, 1), (1, 2), (1, 4), (1, 8))


@dataclass(frozen=True)
class BlockSizes:
    """The sizes that a plan reduces if memory is short.

    Attributes
    ----------
    query_block : int
        Queries that share one pass over the points.
    resident_points : int
        Points that stay packed in memory: the points of some whole slices, or all points.
    active_rows : int
        Rows of a self-join whose lists are in memory together, so that each product of two of them is used for both.
    stream_blocks : int
        Blocks of queries per thread that share points packed during the search.
    stream_chunk : int
        Points that a thread packs at once during the search.
    """

    query_block: int
    resident_points: int
    active_rows: int
    stream_blocks: int
    stream_chunk: int


@dataclass(frozen=True)
class Needs:
    """The sizes on which memory use depends, in addition to :class:`BlockSizes`."""

    n: int
    m: int
    d: int
    k: int
    dtype: np.dtype[Any]
    isa: str
    precisions: tuple[str, ...]
    threads: int
    chunk: int
    capacity: int
    splits: int
    form_dim: int
    look_dim: int

    def packed_bytes(self, precision: str, points: int) -> int:
        look = look_row_bytes(self.look_dim, precision, self.isa) if self.look_dim else 0
        return points * (look + packed_row_bytes(self.form_dim, precision, self.isa))

    @property
    def output_bytes(self) -> int:
        value = 8 if self.dtype == np.float64 else 4
        return self.m * self.k * (value + index_dtype(self.n).itemsize)

    def rows_at_once(self, choice: BlockSizes) -> int:
        """Return the number of queries that are processed at once while points are packed during the search."""
        blocks = -(-self.m // choice.query_block)
        return min(max(1, choice.stream_blocks * self.threads // self.splits), blocks) * choice.query_block

    def passes(self, choice: BlockSizes) -> int:
        """Return how often a search packs each point that does not stay packed."""
        return -(-self.m // self.rows_at_once(choice))

    def block_bytes(self, choice: BlockSizes) -> int:
        """Return the size in bytes of a block of queries when each query has the largest number of candidates."""
        first = 2 * (self.k + 1) + 32
        rooms = self.capacity + _SMALL_BUFFERS if self.capacity > first else 0  # of full capacity
        row = (first + rooms + self.k) * SURVIVOR_BYTES + _STATE_BYTES
        packed = max(choice.query_block, TILE) * self.d * ELEMENT_BYTES["float32"]
        return choice.query_block * row + packed + max(self.capacity, first) * _REFINING_BYTES

    def working_bytes(self, choice: BlockSizes) -> int:
        """Return the largest working memory at any time of the search.

        Blocks of queries, slices packed during the search, and active rows of a self-join are in memory at different
        times, so only the largest of these counts. Smaller buffers are added.
        """
        block = self.block_bytes(choice)
        largest = min(max(self.threads, self.splits), -(-self.m // choice.query_block) * self.splits) * block
        retries = len(self.precisions) > 1
        if retries or choice.resident_points < self.n:
            rows = self.rows_at_once(choice)
            finest = "float32" if retries else self.precisions[0]
            slices = self.threads * self.packed_bytes(finest, min(self.n, choice.stream_chunk))
            # Rows that are retried are copied, and so are their results.
            copies = rows * (self.d * 8 + self.k * 16) if retries else 0
            largest = max(largest, rows // choice.query_block * self.splits * block + copies + slices)
        if choice.active_rows:
            active = min(choice.active_rows, self.n) * (join_row_bytes(self.k) + self.k * SURVIVOR_BYTES)
            largest = max(largest, active + tuning.JOIN_GROWTH * SURVIVOR_BYTES)
        columns = self.look_dim if self.form_dim == self.d and self.look_dim else self.form_dim
        if columns < self.d:
            largest = max(largest, contracting_bytes(self.d, columns))
        forms = self.threads * _ROWS_IN_FORM * (self.d + columns) * 8
        return _SMALL_CHANGE + forms + self.m * _QUERY_BYTES + largest

    def total_bytes(self, choice: BlockSizes) -> int:
        packed = self.packed_bytes(self.precisions[0], choice.resident_points)
        return packed + self.working_bytes(choice) + self.output_bytes

    def with_resident(self, choice: BlockSizes, budget: int) -> BlockSizes:
        """Return the choice with as many points packed as the budget allows: several whole slices, or all points."""
        spare = budget - self.total_bytes(replace(choice, resident_points=0))
        if self.packed_bytes(self.precisions[0], self.n) <= spare:
            return replace(choice, resident_points=self.n)
        slices = spare // self.packed_bytes(self.precisions[0], self.chunk)
        return replace(choice, resident_points=slices * self.chunk)


def resident_choices(needs: Needs, wish: BlockSizes, fixed: Collection[str]) -> list[BlockSizes]:
    """Return the preferred sizes, then alternatives that keep the same points packed and need less memory.

    The alternatives first reduce the memory for points packed during the search, then the shared products of a
    self-join, and last the blocks of queries.
    """
    choices = _with_stream_sizes([wish], needs)
    if "active_rows" not in fixed:
        active = wish.active_rows
        while (active := active // 2 // JOIN_BLOCK * JOIN_BLOCK) and shares_enough(active, needs.n):
            choices += _with_stream_sizes([replace(wish, active_rows=active)], needs)
        blocks = [size for size in _halves(wish, fixed) if size >= min(wish.query_block, TILE)]
        choices += _with_stream_sizes([replace(wish, query_block=size, active_rows=0) for size in blocks], needs)
    return choices


def within(budget: int, needs: Needs, wish: BlockSizes, fixed: Collection[str]) -> BlockSizes:
    """Return the block sizes that fit the budget and are closest to the preferred ones.

    If possible, all points stay packed and everything else is reduced. Otherwise only some points stay packed.
    """
    choices = resident_choices(needs, wish, fixed)
    for choice in choices:
        if needs.total_bytes(choice) <= budget:
            return choice
    if not {"active_rows", "resident"} & set(fixed):
        alone = replace(wish, resident_points=0, active_rows=0)
        streamed = _with_stream_sizes([replace(alone, query_block=size) for size in _halves(wish, fixed)], needs)
        partly = [needs.with_resident(made, budget) for made in streamed if needs.total_bytes(made) <= budget]
        if partly:
            whole = min(TILE, partly[0].query_block)  # a block of fewer queries would leave much of a tile empty
            partly = [made for made in partly if made.query_block >= whole]
            return min(partly, key=lambda made: needs.passes(made) * (needs.n - made.resident_points))
        choices += streamed
    least = min(choices, key=needs.total_bytes)
    raise BudgetExceeded(
        f"a memory budget of {budget} bytes cannot hold this search: results take {needs.output_bytes} and work takes "
        f"{needs.total_bytes(least) - needs.output_bytes}; allow at least {needs.total_bytes(least)}, or search "
        "the queries in smaller batches; a graph whose lists do not fit: tonari.build_graph",
        least=needs.total_bytes(least),
    )


def _with_stream_sizes(choices: list[BlockSizes], needs: Needs) -> list[BlockSizes]:
    """Return variants of each choice that need less and less memory for points packed during the search."""
    return [
        replace(choice, stream_blocks=blocks, stream_chunk=stream_chunk(needs.chunk, parts))
        for choice in choices
        for blocks, parts in _STREAM_SIZES
    ]


def packed_row_bytes(d: int, precision: str, isa: str) -> int:
    """Return the size in bytes of one packed point, for the kernel of an instruction set."""
    return padded(d, precision, isa) * ELEMENT_BYTES[precision] + METADATA_BYTES


_LEAST_GROUP = 4  # points that share a minimum (native/exact/kernels.hpp)


def look_row_bytes(look_dim: int, precision: str, isa: str) -> int:
    """Return the additional bytes per point for a look, a comparison of contracted rows before the screen.

    They hold the point's contracted copy, its share of the ball around its group, its position in the order of
    clusters, and the coordinates that determine its cluster.
    """
    packed = packed_row_bytes(look_dim, precision, isa)
    return packed + -(-(packed + 8) // _LEAST_GROUP) + 8 + 4 * CLUSTER_COLUMNS


def contracting_bytes(d: int, form_dim: int) -> int:
    """Return the bytes for finding the directions of a contraction: copies of the basis, and second moments."""
    return (5 * (form_dim + 16) + _ROWS_IN_FORM) * (d + 16) * 8 + (form_dim + 16) ** 2 * 8


def pilot_bytes(n: int, d: int, form_dim: int) -> int:
    """Return the bytes that a pilot takes: two copies of its sample, and the search for principal directions."""
    return min(n, SAMPLE_ROWS) * (d + form_dim) * 16 + contracting_bytes(d, form_dim)


def padded(d: int, precision: str, isa: str) -> int:
    """Return an upper bound on the number of columns of a packed row of d columns, for an instruction set."""
    run = {"int8": 64 if isa == "amx" else 4, "bfloat16": 32, "float32": 1}[precision]
    return -(-d // run) * run


def stream_chunk(chunk: int, parts: int) -> int:
    """Return the number of points, in whole groups, in each part of a slice that is cut into `parts` parts."""
    return max(1, chunk // GROUPS_FIT // parts) * GROUPS_FIT


def _halves(wish: BlockSizes, fixed: Collection[str]) -> list[int]:
    """Return the block size, a half of it, a quarter and so on; sizes above a tile are rounded down to whole tiles."""
    halves = [wish.query_block]
    while halves[-1] > 1 and "query_block" not in fixed:
        half = halves[-1] // 2
        halves.append(max(1, half // TILE * TILE if half > TILE else half))
    return halves


def shares_enough(active: int, n: int) -> bool:
    """Return whether a self-join of n rows with this many active rows shares enough products to save time."""
    return active >= 8 * JOIN_BLOCK and 8 * active >= n


def join_row_bytes(k: int) -> int:
    """Return the bytes of an active row before its buffer grows: its state, and room for 2 (k + 1) + 24 candidates."""
    return (2 * (k + 1) + 24) * SURVIVOR_BYTES + 128
