"""The cost of a search on a GPU: bytes, which must fit the budget, and seconds, by which plans are compared.

The modules of the search count their own bytes; this module adds them.
"""

from __future__ import annotations

from dataclasses import dataclass

from tonari.core.results.neighbors import index_dtype
from tonari.core.units import MIB
from tonari.costs.model import copying_seconds
from tonari.costs.rates import CARD
from tonari.exact.cuda import tuning
from tonari.exact.cuda.refine.groups import CANDIDATE_BYTES, refined_bytes
from tonari.exact.cuda.rows.contraction import contracted_row_bytes, contraction_bytes, sample_rows
from tonari.exact.cuda.rows.copies import subset_bytes
from tonari.exact.cuda.rows.form_dim import pilot_bytes
from tonari.exact.cuda.rows.groups import POINT_TILE, group_count
from tonari.exact.cuda.rows.pack import packed_bytes, packed_row_bytes, query_bytes
from tonari.exact.cuda.screens.mirrored import may_mirror, noted_bytes, slots_within
from tonari.exact.cuda.screens.sampling import sample_for, sample_within
from tonari.exact.cuda.screens.widths import NEAR_BYTES, wider
from tonari.select.cuda.ordering.order import MERGE_BYTES

SMALL_CHANGE = 64 * MIB  # bytes for flags and sums, and for sizes that the allocator rounds up
LEAST_BATCH = 128  # minimum number of queries in a full batch: with fewer, matrix units are partly idle
MEMBER_BYTES = 32  # bytes per member of a group while the members are sorted for the CPU
MOST_POINTS = 2**31 - 1  # maximum number of points on one device at once, because their row numbers are int32
LISTED_BYTES = NEAR_BYTES + MEMBER_BYTES  # bytes per listed point, if points are sorted for the CPU


@dataclass(frozen=True)
class Slabs:
    """The number of original points, and of queries, that are on a device at once.

    Attributes
    ----------
    route : str
    points : int
        Original points: for "resident" all points of the device, for "streamed" a slab, and for "host_refine" the
        points that are packed or contracted at once.
    queries : int
        Original queries and their results.
    """

    route: str
    points: int
    queries: int


@dataclass(frozen=True)
class CudaNeeds:
    """The sizes and properties of a search on which its memory and time depend.

    Attributes
    ----------
    n, m, d, k : int
        Numbers of points, queries, dimensions and neighbours on one device.
    itemsize, query_itemsize, value_itemsize : int
        Bytes per element of a point and of a query, and per returned distance.
    gemm, self_join : bool
        Whether scores are matrix products, and whether the queries are the points.
    host_points, host_queries : bool
        Whether points, and queries, are in host memory.
    devices : int
        Number of devices. Each of several devices gets copies of its rows, even if the rows are on a device already.
    results : int
        Queries of the whole search if its results are returned on the device, else 0.
    merged : bool
        Whether lists from parts of the points are merged.
    precisions : tuple of str
    group, width : int
        Points per group, and groups per row, as in the plan; `width` may exceed the number of groups.
    form_dim : int
        Coordinates of contracted rows; 0 if the screen compares all dimensions.
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
    form_dim: int = 0
    devices: int = 1
    results: int = 0
    merged: bool = False

    @property
    def several(self) -> bool:
        """Whether the search uses several devices."""
        return self.devices > 1

    @property
    def points_come(self) -> bool:
        """Whether points have to be copied to the device."""
        return self.host_points or self.several

    @property
    def queries_come(self) -> bool:
        """Whether queries have to be copied to the device."""
        return self.host_queries or self.several

    def held(self, slabs: Slabs) -> int:
        """Return the number of points whose packed copies are on the device at once and are screened together."""
        return slabs.points if slabs.route == "streamed" else self.n

    def groups(self, slabs: Slabs) -> int:
        """Return the number of groups, which is the number of minima per row."""
        return group_count(self.held(slabs), self.group)

    def refined_groups(self, slabs: Slabs) -> int:
        """Return the number of groups per row that the first attempt refines."""
        return min(self.groups(slabs), self.width)

    @property
    def screened(self) -> int:
        """The number of columns that the screen compares."""
        return self.form_dim or self.d

    def packed_bytes(self, slabs: Slabs, precision: str) -> int:
        """Return the bytes of a packed copy of the points, and of the contracted rows that it is made from."""
        count = self.held(slabs)
        return packed_bytes(count, self.screened, precision) + count * self._contracted_row()

    def copied_bytes(self, slabs: Slabs) -> int:
        """Return the bytes of original points and queries that are copied to the device and stay there."""
        points = self.n if slabs.route == "resident" and self.points_come else 0
        among_points = self.self_join and slabs.route == "resident" and self.m <= self.n
        queries = 0 if among_points or slabs.route == "host_refine" or not self.queries_come else slabs.queries
        return self.d * (points * self.itemsize + queries * self.query_itemsize)

    def output_bytes(self, slabs: Slabs) -> int:
        """Return the bytes of all results that are on the device at the same time."""
        rows = 0 if slabs.route == "host_refine" else slabs.queries  # with host_refine, results are made on the CPU
        gathered = self.results if self.several or rows < self.m else 0  # results of parts are gathered
        return (rows + gathered) * self._list_bytes()

    def batch_bytes(self, slabs: Slabs, batch: int) -> int:
        """Return the bytes of a batch of queries: minima, selected groups, packed queries, and members of groups."""
        members = self._members_bytes(slabs)
        return batch * self._batch_row_bytes(slabs) + min(batch * members, max(members, tuning.REFINE_SCRATCH_BYTES))

    def working_bytes(self, slabs: Slabs, batch: int) -> int:
        """Return the bytes of working memory: a batch, slabs in transfer, a packed sample, and copies for retries."""
        count = self.held(slabs)
        retry = sum(packed_bytes(count, self.screened, precision) for precision in self.precisions[1:-1])
        contracting = 0
        if self.form_dim and slabs.route == "host_refine":  # directions are computed from a copied sample
            contracting = contraction_bytes(self.d, self.form_dim) + sample_rows(self.d) * self.d * self.itemsize
        elif self.form_dim:  # the last retry of unproved rows screens all dimensions
            retry += sum(packed_bytes(count, self.d, precision) for precision in self.precisions[:-1])
            contracting = max(contraction_bytes(self.d, self.form_dim), pilot_bytes(self.d))
        sample = sample_for(count, self.width, self.group) if self.gemm else None
        sampled = 0 if sample is None else self._sample_bytes(count, sample.stride)
        comes = self.points_come and slabs.route != "resident"
        buffers = (2 if slabs.points < self.n else 1) * slabs.points * self.d * self.itemsize if comes else 0
        merged = self.merged or slabs.route == "streamed"
        # Bytes of the certificates, and of row numbers: of unproved rows, and of the queries' own points.
        marks = slabs.queries * (10 + 8 * self.self_join)
        lists = MERGE_BYTES + slabs.queries * self._list_bytes() if merged else 0  # to merge the lists of a part
        return SMALL_CHANGE + self.batch_bytes(slabs, batch) + retry + contracting + sampled + buffers + lists + marks

    def total_bytes(self, slabs: Slabs, batch: int) -> int:
        """Return the bytes that the search allocates on one device."""
        resident = self.packed_bytes(slabs, self.precisions[0]) + self.copied_bytes(slabs)
        return resident + self.working_bytes(slabs, batch) + self.output_bytes(slabs)

    def subset_bytes(self) -> int:
        """Return the additional bytes of a search among some of the points: their rows and packed copies."""
        return subset_bytes(self.n, self.d * self.itemsize) + packed_bytes(self.n, self.d, self.precisions[0])

    def mirrored_slots(self, slabs: Slabs, batch: int, room: int) -> int:
        """Return the number of slots per row for candidates found by earlier batches of a graph (screens/mirrored.py).

        The number is 0 if the search does not use the screen of a graph: if queries and points are not the same rows on
        one device, if the minima of scores take as long as their products, or if `room` bytes are too few.
        """
        graph = self.self_join and self.m == self.n and slabs.route == "resident" and not self.several and self.gemm
        if not graph or batch < tuning.LEAST_ROWS or self.m < tuning.MIRRORED_BATCHES * batch or batch % POINT_TILE:
            return 0
        usual = sample_for(self.n, self.width, self.group, tuning.NOTED_COST)
        if usual is None or not may_mirror(packed_row_bytes(self.screened, self.precisions[0])):
            return 0
        room -= self._sample_bytes(self.n, tuning.LEAST_STRIDE)  # bytes of the largest possible sample
        slots = min(usual.capacity, slots_within(room, self.n, batch))
        return slots if sample_within(self.n, self.width, self.group, usual, slots) is not None else 0

    def mirrored_bytes(self, slots: int, batch: int) -> int:
        """Return the bytes of a graph's lists with `slots` slots per row, and of the sample that gives thresholds."""
        usual = sample_for(self.n, self.width, self.group, tuning.NOTED_COST)
        sample = None if usual is None else sample_within(self.n, self.width, self.group, usual, slots)
        if sample is None:
            return 0
        return noted_bytes(self.n, slots, batch) + self._sample_bytes(self.n, sample.stride)

    def batch(self, slabs: Slabs, budget: int) -> int:
        """Return the queries per batch that the budget and MINIMA_BYTES allow, in whole tiles; 0 if none fit.

        A resident search of up to AT_ONCE batches gets a single batch, if the budget allows it.
        """
        room = budget - self.total_bytes(slabs, 0)
        row, members = self._batch_row_bytes(slabs), self._members_bytes(slabs)
        room = max(room // (row + members), (room - max(members, tuning.REFINE_SCRATCH_BYTES)) // row)
        tiles = -(-self.m // LEAST_BATCH)
        # Batches are short, because the CPU is idle during the first one.
        if self.form_dim and slabs.route == "host_refine":
            tiles = -(-tiles // tuning.LEAST_BATCHES)
        most = max(1, tuning.MINIMA_BYTES // (4 * self.groups(slabs) * LEAST_BATCH))
        at_once = slabs.route == "resident" and tiles <= tuning.AT_ONCE * most
        wanted = (tiles if at_once else min(tiles, most)) * LEAST_BATCH
        if room >= LEAST_BATCH:
            room = room // LEAST_BATCH * LEAST_BATCH
        return max(0, min(wanted, room))

    def row_seconds(self, n: int) -> float:
        """Return the expected seconds to screen n points for one query, and to select and refine its candidates."""
        groups = group_count(n, self.group)
        if self.gemm:  # each two bytes of a packed row take one product and one sum, at the rate of float16
            screen = n * packed_row_bytes(self.screened, self.precisions[0]) / CARD.products
        else:
            screen = 2.0 * n * self.screened / CARD.elements
        screen = max(screen, 4.0 * groups / CARD.write_minima)
        refine = min(groups, self.width) * self.group * self.d * self.itemsize / CARD.read_rows
        return screen + 4.0 * groups / CARD.read_minima + refine

    def seconds(self, slabs: Slabs) -> float:
        """Return the expected seconds for all queries and points of one device, including copies from host memory."""
        slab = self.held(slabs)
        whole, rest = divmod(self.n, slab)
        work = self.m * (whole * self.row_seconds(slab) + (self.row_seconds(rest) if rest else 0.0))
        return work + self.copying_seconds(slabs)

    def copying_seconds(self, slabs: Slabs) -> float:
        """Return the total seconds of copying rows to all devices and of refining on the CPU."""
        passes = -(-self.m // slabs.queries) if slabs.route == "streamed" else 1
        points = passes * self.n * self.d * self.itemsize * self.devices
        queries = 0 if self.self_join else self.m * self.d * self.query_itemsize * self.devices
        from_host = points * self.host_points + queries * self.host_queries
        on_cpu = self.refine_on_cpu_seconds(slabs) if slabs.route == "host_refine" else 0.0
        return on_cpu + copying_seconds(from_host, points + queries - from_host, self.devices)

    def refine_on_cpu_seconds(self, slabs: Slabs) -> float:
        """Return the seconds that one core needs to refine the groups or points that a GPU has listed."""
        members = self.refined_groups(slabs) * (tuning.NEAR_KEPT if self.form_dim else self.group)
        return self.m * members * (CARD.cpu_member + CARD.cpu_value * self.d)

    def pass_seconds(self) -> float:
        """Return the seconds of copying all points from host memory once."""
        return self.n * self.d * self.itemsize / CARD.link

    def _list_bytes(self) -> int:
        """Return the size in bytes of one row of results."""
        return self.k * (self.value_itemsize + index_dtype(self.n).itemsize)

    def _batch_row_bytes(self, slabs: Slabs) -> int:
        groups = self.groups(slabs)
        selected = 8 * (min(groups, wider(self.d) * self.width) + 1)
        packed = query_bytes(self.d, self.precisions[:-1])
        if self.form_dim:  # near points with marks, and two lists of results
            near, each = tuning.NEAR_KEPT * tuning.WIDEST * self.width, NEAR_BYTES
            if slabs.route == "host_refine":  # near points are sorted, and two batches are in memory
                each = LISTED_BYTES
                packed += self._contracted_row() + 8 * self.self_join
            packed += self._contracted_row() + each * near + 2 * self._list_bytes() + 16
        original = self.d * self.query_itemsize if slabs.route == "host_refine" and self.host_queries else 0
        return 4 * groups + 4 * -(-groups // 8) + selected + packed + original + 8 * self.self_join

    def _members_bytes(self, slabs: Slabs) -> int:
        """Return the bytes for refining one retried row: members of its groups, and the row in float64."""
        members = max(self.k, min(self.groups(slabs), wider(self.d) * self.width) * self.group)
        sorted_here = slabs.route == "host_refine" and not self.form_dim
        each = MEMBER_BYTES if sorted_here else CANDIDATE_BYTES * (self.value_itemsize // 4)
        return refined_bytes(members, self.d, each)

    def _sample_bytes(self, n: int, stride: int) -> int:
        """Return the bytes of the packed copy of a sample: every stride-th of n points."""
        return packed_bytes(-(-n // stride), self.screened, self.precisions[0])

    def _contracted_row(self) -> int:
        """Return the size in bytes of a contracted row, 0 without contraction."""
        return contracted_row_bytes(self.form_dim) if self.form_dim else 0
