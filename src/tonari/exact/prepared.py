"""Points made ready: their form (centre and scale, or normalisation) and their packed copies."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from tonari import _native
from tonari.planning import Plan
from tonari.pool import Workers
from tonari.progress import Progress, ProgressLike

# Any centre and scale are correct (the bound measures what they leave); a sample's are as good as the whole's.
_SAMPLE_ROWS = 8_192
_PACKED_VALUES_PER_SECOND = 1.5e8  # one core; for the choice to show progress


class PreparedPoints:
    """Points with their form, packed for the first rung of the plan's ladder unless memory forbids.

    Parameters
    ----------
    points : array of shape (n, d), checked
    plan : Plan
        Names the kernel, the slices and whether the packed copy stays resident.
    progress : None or bool
        As in :func:`tonari.search`, but never the callback, which counts pairs.
    """

    def __init__(self, points: npt.NDArray[Any], plan: Plan, progress: ProgressLike = None) -> None:
        self.points = points
        self.form = _form(points, plan.metric)
        self.slices = [(a, min(a + plan.point_chunk, len(points))) for a in range(0, len(points), plan.point_chunk)]
        self._kernel = ""
        self._packed: list[_native.PackedPoints] = []
        if plan.resident:
            seconds = points.size / (_PACKED_VALUES_PER_SECOND * plan.threads)
            shown = None if callable(progress) else progress
            with Progress(shown, total=len(points), seconds=seconds, label="packing", unit="row") as bar:
                self.keep(plan.kernel(plan.ladder[0]), Workers(plan.threads), bar)

    def keep(self, kernel: str, workers: Workers, bar: Progress | None = None) -> None:
        """Hold the packed copy for `kernel`, in place of any other."""
        self._packed = []  # before the new one is made, so that there are never two
        self._packed, self._kernel = self.pack(kernel, self.slices, workers, bar), kernel

    def pack(
        self, kernel: str, slices: list[tuple[int, int]], workers: Workers, bar: Progress | None = None
    ) -> list[_native.PackedPoints]:
        """Packed copies of slices of the points, for one kernel."""

        def work(bounds: tuple[int, int]) -> _native.PackedPoints:
            workers.check()
            packed = _native.PackedPoints(kernel, self.form, self.points, *bounds)
            if bar is not None:
                bar.add(packed.count)
            return packed

        return workers.map(work, slices)

    def release(self) -> None:
        """Forget the packed copy; searches then pack slice by slice."""
        self._packed, self._kernel = [], ""

    def first_rung(self, plan: Plan) -> int:
        """The rung of the plan's ladder that the packed copy serves; 0 when none is held."""
        kernels = [plan.kernel(precision) for precision in plan.ladder]
        return kernels.index(self._kernel) if self._kernel in kernels else 0

    def resident(self, kernel: str) -> list[_native.PackedPoints]:
        """The packed copy that is held, if it is for `kernel`, else nothing."""
        return self._packed if kernel == self._kernel else []

    @property
    def packed_bytes(self) -> int:
        """Memory of the packed copy."""
        return sum(part.nbytes for part in self._packed)


def _form(points: npt.NDArray[Any], metric: str) -> _native.Form:
    n, d = points.shape
    step = -(-n // _SAMPLE_ROWS)
    zeros = [0.0] * d
    if metric in ("cosine", "correlation"):
        return _native.Form(metric, zeros, 1.0)
    if points.dtype.kind in "iu" and metric in ("euclidean", "sqeuclidean", "inner_product"):
        # Integers stay integers: unsigned bytes move to the signed range that byte products want.
        return _native.Form(metric, [128.0 if points.dtype == np.uint8 else 0.0] * d, 1.0)
    centred = metric in ("euclidean", "sqeuclidean")
    centre = _native.column_means(points, step) if centred else zeros
    if not all(map(math.isfinite, centre)):
        centre = zeros
    return _native.Form(metric, centre, _power_of_two_below_inverse(_native.largest_magnitude(points, centre, step)))


def _power_of_two_below_inverse(magnitude: float) -> float:
    """Scale that brings `magnitude` into [1/2, 1): a power of two, so that it rounds nothing."""
    if magnitude == 0.0 or not math.isfinite(magnitude):
        return 1.0
    return math.ldexp(1.0, max(-1000, min(1000, -math.frexp(magnitude)[1])))
