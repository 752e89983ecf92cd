"""The plan of brute force on CUDA: a frozen record of every choice made before a search begins (planning.py)."""

from __future__ import annotations

from dataclasses import dataclass

from tonari.core.plan import Plan
from tonari.core.problem import Problem
from tonari.exact.cuda import tuning

PILOT = "pilot"  # value of `form_dim`: a measurement on a sample chooses the number of coordinates


@dataclass(frozen=True, kw_only=True)
class CudaPlan(Plan):
    """Every choice of one exact search on CUDA.

    Attributes
    ----------
    n, m, d, k : int
        Numbers of points, queries, dimensions and neighbours.
    dtype, metric, method : str
        Names: the dtype of the points, the metric, and "exact".
    devices : tuple of str
        "cuda:0" and so on.
    route : str
        "resident": points and queries are on the device. "streamed": points, and if necessary queries, are copied to
        the device slab by slab. "host_refine": only the packed copy of the points, or of their contracted rows, is
        on the device; the CPU refines the candidates from the original rows in host memory. "codes": only codes of the
        points are on the device, contracted rows of one byte per coordinate; the device reads the candidates from host
        memory.
    shard : str
        The rows that several devices divide equally. "points": every query is compared with every part of the points,
        and lists are merged. "queries": all points are on each device. "none": one device.
    precisions : tuple of str
        Precisions of the screen, in the order of their use. Rows that one precision does not prove (certify as exact)
        are retried at the next. The last, "values", compares exact values alone.
    form_dim : int or str
        Coordinates of the rows that the screen compares: "full", or the number below d to which rows are contracted
        (rows/contraction.py). "pilot", the default of searches that take seconds, lets a measurement on a sample choose
        the number when the points are prepared (rows/form_dim.py).
    group : int
        Points that share one lower bound, the minimum of their bounds: 8, 16 or 32.
    width : int
        Number of groups of points per row that the first attempt refines; fewer in int8.
    contracted_width : int
        Groups per row in which the first step of a contracted search looks for near points; 0 without a contraction.
    query_batch : int
        Queries whose minima are in memory at once.
    query_slab : int
        Queries on a device at once: m, or fewer if queries are streamed too; points are then streamed once per slab.
    point_slab : int
        Points on one device at once.
    subsets : bool
        Whether the device has room for a copy of some of the points, for searches among this subset. One kind of subset
        omits the copies that no answer can contain (rows/copies.py); it is used in a single long search, or if many
        rows are unproved. The other kind has the points near unproved rows (attempts/retries/nearby.py).
    bytes_first : bool
        Whether a single search first tests whether all elements are integers of one byte. If they are, the search
        begins with "int8", which is exact for such integers (attempts/as_bytes.py), and omits "split".
    bytes_later : bool
        Whether rows left unproved by the first attempt are searched in "int8", if all elements are integers of one
        byte.
    mirrored_slots : int
        For a graph that compares each pair once (screens/mirrored.py): the number of candidates per row that earlier
        batches can add to its list. 0 if each batch is compared with all points.
    cuda_graph : bool
        Whether the second search of these shapes may be captured as a CUDA graph, which later searches replay. For a
        few queries among prepared points, two launches are kept instead (replay/few.py). The search must be resident,
        with tensors on the device, in one batch, and without overrides or a memory limit. On several devices the points
        must be prepared; the queries may be anywhere.
    packed_bytes, copied_bytes, working_bytes, output_bytes : int
        Memory of one device in addition to the input: for packed points, original rows copied from host memory,
        temporary buffers, and results.
    seconds : float
        Rough estimate of the duration.
    points_at_home : int
        For a single search on several devices whose points are all on one of them: the number of points that this
        device packs and searches, more than the others, which wait for their copies. 0 for equal shares.
    why_devices : str
        The number of devices and the reason for it; "" for a single device that the caller named.
    """

    route: str
    shard: str
    precisions: tuple[str, ...]
    form_dim: int | str
    group: int
    width: int
    contracted_width: int
    query_batch: int
    query_slab: int
    point_slab: int
    subsets: bool
    bytes_first: bool
    bytes_later: bool
    mirrored_slots: int
    cuda_graph: bool
    points_at_home: int = 0
    why_devices: str = ""

    @property
    def devices_chosen(self) -> str:
        return self.why_devices

    @property
    def replayable(self) -> bool:
        return self.cuda_graph

    @property
    def copies_first(self) -> bool:
        """Whether a search of unprepared points looks for duplicate rows before it packs the points."""
        return self.subsets and self.seconds >= tuning.COPIES_SECONDS

    @property
    def looks_first(self) -> bool:
        """Whether a search of unprepared points tests the points before it packs them.

        It tests for duplicate rows, or for rows that consist of 8-bit integers.
        """
        return self.copies_first or self.bytes_first

    @property
    def few(self) -> bool:
        """Whether the first attempt takes two launches (screens/few.py), which is faster for a few queries.

        The property is computed from other fields, so that plans for parts of a search have it, too. It requires the
        first precision float16, which all metrics of products have, except for floats of up to 16 columns. Minima and
        packed queries, at most 3 MB per query, fit into the bytes that plans reserve for small buffers.
        """
        small = self.m <= tuning.FEW_QUERIES and self.k <= tuning.FEW_NEIGHBOURS and len(self.devices) == 1
        short = self.n <= tuning.FEW_POINTS and self.d <= tuning.FEW_COLUMNS
        return small and short and self.cuda_graph and self.form_dim == "full" and self.precisions[0] == "float16"

    def for_problem(self, problem: Problem) -> CudaPlan:
        """Return this plan if it can be used for a problem; raise ValueError otherwise."""
        super().for_problem(problem)
        if self.route in ("host_refine", "codes") and not problem.host_points:
            raise ValueError(
                f"the plan's route is {self.route!r}, which refines from host memory: the points are on a device"
            )
        return self
