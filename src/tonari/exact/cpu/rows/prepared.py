"""Prepared points: their form (centre and scale, or normalisation), their order, and their packed copies."""

from __future__ import annotations

import math
import threading
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from tonari.core import _native
from tonari.core._native import PackedPoints
from tonari.core.process.progress import Progress, ProgressLike
from tonari.core.process.workers import Workers
from tonari.exact import tuning
from tonari.exact.cpu.rows.boxes import Boxes
from tonari.exact.cpu.rows.clusters import Clusters
from tonari.exact.cpu.rows.contraction import Arrangement, arrange_points
from tonari.exact.plan import ExactPlan
from tonari.metrics import get_metric

_ARRANGED = frozenset(("form", "form_dim", "look", "clusters", "slices", "_whole_plan", "_arranged_plan"))


class PreparedPoints:
    """Points and their form, packed for the first precision of the plan as far as memory allows.

    Steps of the preparation that take a millisecond or two are done by the first search that needs them, because
    searches of few queries may not need them at all.

    Parameters
    ----------
    points : array of shape (n, d), checked
    plan : ExactPlan
        Determines the kernel, the slices, and how many points stay packed.
    progress : None, bool or callable(done, total)
        As in :func:`tonari.search`. A callable counts pairs, so the preparation does not call it.
    boundary : int
        A row number that no slice may span; all points must then stay packed.
    asked : int, optional
        Expected number of queries. Default: that of the plan. More queries justify more preparation.
    kept : int64 array, optional
        Row numbers of the searched points, ascending, if only a subset is searched; the plan is then for this subset.
    made : Arrangement, optional
        The form and the order of the points. Default: by the plan, or by a pilot.
    slices : list of (begin, end), optional
        The slices of the points. Default: the plan's slices.

    Attributes
    ----------
    points : array of shape (n, d)
        All points.
    count : int
        Number of searched points.
    form : Form
        The form that the screen compares.
    form_dim : int
        The number of columns of the form.
    look : Form, optional
        The form of a look at contracted rows before the screen.
    clusters : Clusters, optional
        The order in which points are packed. Default: their own order.
    """

    boxes: Boxes | None = None  # of points that are in memory only as codes (codes.py)
    form: _native.Form
    form_dim: int
    look: _native.Form | None
    clusters: Clusters | None
    slices: list[tuple[int, int]]
    _whole_plan: ExactPlan | None
    _arranged_plan: ExactPlan

    def __init__(
        self,
        points: npt.NDArray[Any],
        plan: ExactPlan,
        progress: ProgressLike = None,
        *,
        boundary: int = 0,
        asked: int | None = None,
        kept: npt.NDArray[np.int64] | None = None,
        made: Arrangement | None = None,
        slices: list[tuple[int, int]] | None = None,
    ) -> None:
        self.points, self.kept = points, kept
        self.count = len(points) if kept is None else len(kept)
        self._given = plan, plan.m if asked is None else asked, boundary, made, slices
        self._arranging = threading.Lock()  # held by the one thread that arranges the points
        self._whole: PreparedPoints | None = None
        self._making_whole = threading.Lock()
        self._held: tuple[str, list[PackedPoints]] = ("", [])  # kernel name, leading slices packed for it
        self._holding = threading.Lock()  # held by the one search that changes the packed points
        if made is None and plan.prepare_seconds < tuning.PREPARED_LATER:
            return
        plan = self._arranged_plan
        if plan.resident_points:
            shown, rows = None if callable(progress) else progress, plan.resident_points
            with Progress(shown, total=rows, seconds=plan.prepare_seconds, label="packing", unit="row") as bar:
                self.hold(plan.kernels[plan.precisions[0]], rows, Workers(plan.threads), bar)

    def __getattr__(self, name: str) -> Any:
        """Arrange the points at the first use of an attribute that depends on their form."""
        if name not in _ARRANGED:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        with self._arranging:
            if name not in self.__dict__:
                self._arrange()
        return self.__dict__[name]

    def _arrange(self) -> None:
        plan, asked, boundary, made, slices = self._given
        if made is None:
            form = _native.Form(plan.metric, *centre_and_scale(self.points, plan.metric))
            made = arrange_points(self.points, form, plan, asked, self.kept)
        self.form, self.form_dim, self.look, self.clusters = made
        # A pilot may misjudge rows outside its sample, so rows may be searched again in all columns, unless the caller
        # chose the number of columns.
        self._whole_plan = replace(plan, may_contract=False) if made.columns < plan.form_dim else None
        plan = plan.contracted_to(made.columns)
        sides, size = ((0, boundary), (boundary, self.count)), plan.point_chunk
        self.slices = slices or [(a, min(a + size, end)) for begin, end in sides for a in range(begin, end, size)]
        self._arranged_plan = plan

    @property
    def falls_back(self) -> bool:
        """Whether rows that have too many candidates after a screen of contracted rows are searched in all columns."""
        return self._whole_plan is not None

    @property
    def order(self) -> npt.NDArray[np.int64] | None:
        """The row number of the point at each packed position; None if points are packed in their own order."""
        if self.boxes is not None:
            return self.boxes.order
        return self.kept if self.clusters is None else self.clusters.order

    @property
    def sketch(self) -> npt.NDArray[np.float32] | None:
        """The leading coordinates of the points, by packed position; None if points are packed in their own order."""
        return None if self.clusters is None else self.clusters.sketch

    def is_compared(self, plan: ExactPlan) -> bool:
        """Whether radius searches compute the exact values of all pairs, without a screen."""
        return plan.direct_within < tuning.WITHIN_PACKED

    def planned(self, plan: ExactPlan) -> ExactPlan:
        """Convert a plan for all columns to a plan for the columns to which these points are contracted."""
        return plan.contracted_to(self.form_dim, 0 if self.look is None else self.look.columns)

    def whole(self) -> PreparedPoints:
        """Return these points prepared in all columns, for queries that contracted points cannot resolve."""
        assert self._whole_plan is not None
        with self._making_whole:
            if self._whole is None:
                self._whole = PreparedPoints(self.points, self._whole_plan, False, kept=self.kept)
            return self._whole

    def hold(self, kernel: str, count: int, workers: Workers, bar: Progress | None = None) -> list[PackedPoints]:
        """Keep exactly the first `count` points packed for `kernel`: pack missing slices, and free all others.

        If several searches call this at once, one packs and the others wait. A search may use the returned slices even
        after they are freed here.
        """
        first, slices = self.slices[0], self.slices
        wanted = len(slices) if count == self.count else count // (first[1] - first[0])
        with self._holding:
            packed = self.resident(kernel)[:wanted]
            self._held = kernel, packed  # release slices before packing new ones
            if len(packed) < wanted:
                packed = packed + self.pack(kernel, slices[len(packed) : wanted], workers, bar)
                self._held = kernel, packed
            return packed

    def release(self) -> None:
        """Free all packed points; a running search keeps the slices that it uses."""
        with self._holding:
            self._held = "", []
        if self._whole is not None:
            self._whole.release()

    def pack(
        self,
        kernel: str,
        slices: list[tuple[int, int]],
        workers: Workers,
        bar: Progress | None = None,
        *,
        looks: bool = True,
    ) -> list[PackedPoints]:
        """Return slices of the points, packed for a kernel and, if a look precedes the screen, for the look."""

        def work(bounds: tuple[int, int]) -> PackedPoints:
            workers.check()
            look = self.look if looks else None
            packed = PackedPoints(kernel, self.form, self.points, *bounds, order=self.order, look=look)
            if bar is not None:
                bar.add(packed.count)
            return packed

        return workers.map(work, slices)

    def first_level(self, plan: ExactPlan) -> int:
        """Return the index of a search's first precision: that of the packed points if the plan allows it, else 0."""
        kernels = [plan.kernels[precision] for precision in plan.precisions]
        kernel = self._held[0]
        return kernels.index(kernel) if plan.finer_resident and kernel in kernels else 0

    def resident(self, kernel: str) -> list[PackedPoints]:
        """Return the slices of points that are packed for `kernel`: the first ones, or all."""
        packed = self._held
        return packed[1] if kernel == packed[0] else []

    def holds(self, kernel: str) -> bool:
        """Whether all points are packed for `kernel`."""
        return len(self.resident(kernel)) == len(self.slices)

    @property
    def held_bytes(self) -> int:
        """Bytes of all copies of the points that are packed at present."""
        return self.packed_bytes + (0 if self._whole is None else self._whole.held_bytes)

    @property
    def packed_bytes(self) -> int:
        """Bytes of one packed copy of all points, of their order, and of the coordinates by which they were ordered."""
        made = self.__dict__.get("clusters")
        clusters = 0 if made is None else made.order.nbytes + made.sketch.nbytes
        clusters += 0 if self.boxes is None else self.boxes.nbytes
        return clusters + sum(part.nbytes for part in self._held[1])


def centre_and_scale(points: npt.NDArray[Any], metric: str) -> tuple[list[float], float]:
    """Choose, from a sample of points, the centre to subtract from rows and the scale by which they are multiplied."""
    n, d = points.shape
    step = -(-n // min(tuning.CENTRED_ROWS, max(1, tuning.CENTRED_VALUES // d)))
    zeros = [0.0] * d
    record = get_metric(metric)
    if record.angular:
        return zeros, 1.0
    if points.dtype.kind in "iu" and (record.squares or record.products):
        # Integers stay integers; unsigned bytes are shifted to the signed range that int8 products need.
        return [128.0 if points.dtype == np.uint8 else 0.0] * d, 1.0
    centre = _native.column_means(points, step) if record.squares else zeros
    if not all(map(math.isfinite, centre)):
        centre = zeros
    degree = record.degree if record.elementwise else 1.0
    return centre, _power_of_two_below_inverse(_native.largest_magnitude(points, centre, step), degree)


def _power_of_two_below_inverse(magnitude: float, degree: float) -> float:
    """Return the power of two that scales `magnitude` into [1/2, 1). Multiplying by a power of two is exact.

    The factor between values and scores is scale^degree, which is also a power of two, from 2^-1000 to 2^1000. If the
    degree is not a whole number, the scale is a power of four, and scaled magnitudes are at least 1/4.
    """
    if magnitude == 0.0 or not math.isfinite(magnitude):
        return 1.0
    step = 1 if degree.is_integer() else 2
    most = int(1000 / max(degree, 1.0)) // step * step
    return math.ldexp(1.0, max(-most, min(most, -math.frexp(magnitude)[1] // step * step)))
