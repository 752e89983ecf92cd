"""What a search costs on a GPU: bytes, which a budget counts on, and seconds, by which choices are compared."""

from __future__ import annotations

from dataclasses import dataclass

from tonari.core.neighbors import index_dtype
from tonari.core.units import MIB
from tonari.costs.rates import CARD
from tonari.exact.cuda.groups import POINT_TILE, group_count
from tonari.exact.cuda.pack import packed_width
from tonari.exact.cuda.refine import CANDIDATE_BYTES, SCRATCH_BYTES
from tonari.exact.cuda.sampling import sample_for
from tonari.select.cuda.order import MERGE_BYTES

MINIMA_BYTES = 2048 * MIB  # of one batch of queries at most: a longer one is no faster
SMALL_CHANGE = 64 * MIB  # flags, sums, what the allocator rounds up to
LEAST_BATCH = 128  # rows of a screen's tile: fewer leave the matrix units idle
MEMBER_BYTES = 32  # of a member's number while it is put in order for the CPU
MOST_POINTS = 2**31 - 1  # on one device at once: there they are numbered in int32
WIDER = 4  # times as many groups are refined for rows that were not proved at first


@dataclass(frozen=True)
class Slabs:
    """Which rows are on a device at once.

    Attributes
    ----------
    route : str
    points : int
        Original points: all of a device's for "resident", a slab for "streamed", and for "host_refine" as many as are
        packed at once.
    queries : int
        Original queries, with their results.
    """

    route: str
    points: int
    queries: int


@dataclass(frozen=True)
class CudaNeeds:
    """What cost depends on.

    Attributes
    ----------
    n, m, d, k : int
        n: points of one device.
    itemsize, query_itemsize, value_itemsize : int
        Bytes of an element of a point and of a query, and of a returned distance.
    gemm, self_join : bool
    host_points, host_queries : bool
    several : bool
        Whether this device is one of several, to which rows are copied wherever they lie.
    results : int
        Rows of the whole search's results if they are to lie on the device, else 0.
    merged : bool
        Whether lists of parts of the points are merged.
    precisions : tuple of str
    group, width : int
        width: as wished; there may be fewer groups.
    """

    n: int
    m: int
    d: int
    k: int
    itemsize: int
    query_itemsize: int
    value_itemsize: int
    gemm: bool
    self_join: bool
    host_points: bool
    host_queries: bool
    precisions: tuple[str, ...]
    group: int
    width: int
    several: bool = False
    results: int = 0
    merged: bool = False

    @property
    def points_come(self) -> bool:
        """Whether points have to be copied to the device."""
        return self.host_points or self.several

    @property
    def queries_come(self) -> bool:
        """Whether queries have to be copied to the device."""
        return self.host_queries or self.several

    def held(self, slabs: Slabs) -> int:
        """Points that are packed at once, and screened together."""
        return slabs.points if slabs.route == "streamed" else self.n

    def groups(self, slabs: Slabs) -> int:
        """Minima of one row."""
        return group_count(self.held(slabs), self.group)

    def refined_groups(self, slabs: Slabs) -> int:
        """Groups of one row that are refined at first."""
        return min(self.groups(slabs), self.width)

    def packed_bytes(self, slabs: Slabs, precision: str) -> int:
        """A packed copy."""
        return self._packed(self.held(slabs), precision)

    def copied_bytes(self, slabs: Slabs) -> int:
        """Original rows that come from host memory and stay for as long as their slab."""
        points = self.n if slabs.route == "resident" and self.points_come else 0
        among_points = self.self_join and slabs.route == "resident" and self.m <= self.n
        queries = 0 if among_points or slabs.route == "host_refine" or not self.queries_come else slabs.queries
        return self.d * (points * self.itemsize + queries * self.query_itemsize)

    def output_bytes(self, slabs: Slabs) -> int:
        """Results that the device holds at once."""
        rows = 0 if slabs.route == "host_refine" else slabs.queries  # there they are made by the CPU
        gathered = self.results if self.several or rows < self.m else 0  # where they are not made in one piece
        return (rows + gathered) * self._list_bytes()

    def batch_bytes(self, slabs: Slabs, batch: int) -> int:
        """A batch of queries: minima, what selects from them, packed values; and members of groups, some at a time."""
        members = self._members_bytes(slabs)
        return batch * self._batch_row_bytes(slabs) + min(batch * members, max(members, SCRATCH_BYTES))

    def working_bytes(self, slabs: Slabs, batch: int) -> int:
        """Batches of queries, slabs on their way, packed samples, copies for rows that are retried, small change."""
        held = self.held(slabs)
        retry = sum(self._packed(held, precision) for precision in self.precisions[1:-1])
        sample = sample_for(held, self.width, self.group) if self.gemm else None
        sampled = 0 if sample is None else self._packed(-(-held // sample.stride), self.precisions[0])
        comes = self.points_come and slabs.route != "resident"
        buffers = (2 if slabs.points < self.n else 1) * slabs.points * self.d * self.itemsize if comes else 0
        merged = self.merged or slabs.route == "streamed"
        marks = slabs.queries * (10 + 8 * self.self_join)  # proved or not, numbers of those that are not, own numbers
        lists = MERGE_BYTES + slabs.queries * self._list_bytes() if merged else 0  # of one part, beside those so far
        return SMALL_CHANGE + self.batch_bytes(slabs, batch) + retry + sampled + buffers + lists + marks

    def total_bytes(self, slabs: Slabs, batch: int) -> int:
        """Bytes on one device beyond what lies there already."""
        kept = self.packed_bytes(slabs, self.precisions[0]) + self.copied_bytes(slabs)
        return kept + self.working_bytes(slabs, batch) + self.output_bytes(slabs)

    def batch(self, slabs: Slabs, budget: int) -> int:
        """Queries of a batch: as many as the budget and a good size of minima allow, in whole tiles; 0 if none fit."""
        room = budget - self.total_bytes(slabs, 0)
        row, members = self._batch_row_bytes(slabs), self._members_bytes(slabs)
        room = max(room // (row + members), (room - max(members, SCRATCH_BYTES)) // row)
        wanted = min(-(-self.m // LEAST_BATCH), MINIMA_BYTES // (4 * self.groups(slabs) * LEAST_BATCH))
        wanted = max(1, wanted) * LEAST_BATCH
        if room >= LEAST_BATCH:
            room = room // LEAST_BATCH * LEAST_BATCH
        return max(0, min(wanted, room))

    def row_seconds(self, n: int) -> float:
        """One query against n points: screen, which writes minima on the way, then select, then refine."""
        groups = group_count(n, self.group)
        columns = packed_width(self.d, self.precisions[0])
        rate = CARD.products if self.gemm else CARD.elements
        screen = max(2.0 * n * columns / rate, 4.0 * groups / CARD.write_minima)
        refine = min(groups, self.width) * self.group * self.d * self.itemsize / CARD.read_rows
        return screen + 4.0 * groups / CARD.read_minima + refine

    def seconds(self, slabs: Slabs) -> float:
        """All queries against all points of one device, and what has to come from host memory."""
        slab = self.held(slabs)
        whole, rest = divmod(self.n, slab)
        work = self.m * (whole * self.row_seconds(slab) + (self.row_seconds(rest) if rest else 0.0))
        return work + self.copying_seconds(slabs)

    def copying_seconds(self, slabs: Slabs) -> float:
        """What comes from host memory, and what the CPU refines there."""
        passes = -(-self.m // slabs.queries) if slabs.route == "streamed" else 1
        points = passes * self.n * self.itemsize if self.points_come else 0
        queries = self.m * self.query_itemsize if self.queries_come and not self.self_join else 0
        on_cpu = self.refine_on_cpu_seconds(slabs) if slabs.route == "host_refine" else 0.0
        return on_cpu + self.d * (points + queries) / CARD.link

    def refine_on_cpu_seconds(self, slabs: Slabs) -> float:
        """What one core takes for the groups that a GPU has screened."""
        return self.m * self.refined_groups(slabs) * self.group * (CARD.cpu_member + CARD.cpu_value * self.d)

    def pass_seconds(self) -> float:
        """Letting all points come from host memory once more."""
        return self.n * self.d * self.itemsize / CARD.link

    def _list_bytes(self) -> int:
        """One row of results."""
        return self.k * (self.value_itemsize + index_dtype(self.n).itemsize)

    def _batch_row_bytes(self, slabs: Slabs) -> int:
        groups = self.groups(slabs)
        selected = 8 * (min(groups, WIDER * self.width) + 1)
        packed = max(self._packed_row(precision) for precision in self.precisions[:-1]) + 16  # and three numbers
        original = self.d * self.query_itemsize if slabs.route == "host_refine" and self.host_queries else 0
        return 4 * groups + 4 * -(-groups // 8) + selected + packed + original + 8 * self.self_join

    def _members_bytes(self, slabs: Slabs) -> int:
        """Members of one row's groups, of a row that was not proved at first, and the row in float64."""
        members = max(self.k, min(self.groups(slabs), WIDER * self.width) * self.group)
        each = MEMBER_BYTES if slabs.route == "host_refine" else CANDIDATE_BYTES * (self.value_itemsize // 4)
        return each * members + 8 * (self.d + 15)

    def _packed(self, n: int, precision: str) -> int:
        """Values, a term for each point, two errors for each tile of them."""
        tiles = -(-n // POINT_TILE)
        return tiles * (POINT_TILE * (self._packed_row(precision) + 4) + 8)

    def _packed_row(self, precision: str) -> int:
        return packed_width(self.d, precision) * (4 if precision == "float32" else 2)
