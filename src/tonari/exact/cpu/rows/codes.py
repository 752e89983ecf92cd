"""Points that are in memory only as codes: contracted rows in int8, with their measured errors.

The original rows are not copied; they are usually in a mapped file. A search compares codes, and reads only the rows
that the codes cannot rule out (docs/exactness.md, "Codes"). All codes are made in one pass over the rows: a slice is
checked, its checksum is computed, and it is packed while its pages are in memory.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tonari.core import _native
from tonari.core._native import PackedPoints
from tonari.core.process.progress import Progress, ProgressLike
from tonari.core.process.workers import Workers
from tonari.exact.cpu.rows.boxes import Boxes, window_of
from tonari.exact.cpu.rows.code_forms import PRECISION, CodeForm, is_refused, refuse
from tonari.exact.cpu.rows.contraction import Arrangement
from tonari.exact.cpu.rows.prepared import PreparedPoints
from tonari.exact.plan import ExactPlan
from tonari.io.stored import forget_pages

Rows = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]
Bytes = npt.NDArray[np.uint8]


class WrittenCodes(NamedTuple):
    """The codes of the points [begin, end), as bytes in the layout of a kernel.

    Attributes
    ----------
    begin, end : int
    packed : uint8 array
    """

    begin: int
    end: int
    packed: Bytes


class CodedPoints(PreparedPoints):
    """Points with codes in memory; see :class:`PreparedPoints`.

    Parameters
    ----------
    points : array of shape (n, d)
        Rows whose values are not checked yet; there may be gaps between them.
    plan : ExactPlan
        A plan with the fields that :func:`overrides_of` returns for the form.
    made : CodeForm
    progress : None, bool or callable(done, total)
        As for :class:`PreparedPoints`.
    written : sequence of WrittenCodes, optional
        Codes that :meth:`written` returned, for the first kernel of the plan. Default: make them from the rows.
    boxes : Boxes, optional
        The boxes that belong to these codes.

    Attributes
    ----------
    checksums : list of (int, int, int)
        Begin, end and CRC-32 of the rows of each slice; empty if the codes were not made from the rows.
    """

    def __init__(
        self,
        points: Rows,
        plan: ExactPlan,
        made: CodeForm,
        progress: ProgressLike = None,
        written: Sequence[WrittenCodes] | None = None,
        boxes: Boxes | None = None,
    ) -> None:
        self.checksums: list[tuple[int, int, int]] = []
        kernel = plan.kernels[PRECISION]
        if written is None and made.boxes is not None:
            group = PackedPoints(kernel, made.form, points, 0, 1).group
            boxes = Boxes(made.boxes, len(points), group)
        self.boxes = boxes
        self._restored = [_native.restored_points(kernel, made.form, *part) for part in written or ()]
        bounds = [(part.begin, part.end) for part in written or ()]
        arrangement = Arrangement(made.form, made.form.columns)
        super().__init__(points, plan, progress, made=arrangement, slices=bounds or None)

    def pack(
        self,
        kernel: str,
        slices: list[tuple[int, int]],
        workers: Workers,
        bar: Progress | None = None,
        *,
        looks: bool = True,
    ) -> list[PackedPoints]:
        """Check and pack slices of the points in one pass over the rows, or return codes restored from a file."""
        if self._restored:
            restored, self._restored = self._restored, []
            return restored

        def check(bounds: tuple[int, int]) -> int:
            workers.check()
            begin, end = bounds
            rows = np.ascontiguousarray(self.points[begin:end])
            if is_refused(rows):
                refuse(self.points)
            return checksum_of(rows)

        def work(bounds: tuple[int, int]) -> PackedPoints:
            workers.check()
            packed = PackedPoints(kernel, self.form, self.points, *bounds, order=self.order)
            if bar is not None:
                bar.add(packed.count)
            return packed

        found: list[PackedPoints] = []
        for window in _windows(slices):
            begin, end = window[0][0], window[-1][1]
            checksums = workers.map(check, window)
            self.checksums += [(*bounds, checksum) for bounds, checksum in zip(window, checksums, strict=True)]
            if self.boxes is not None:
                self.boxes.arrange(self.points, begin, end, workers)
            found += workers.map(work, window)
            forget_pages(self.points[begin:end])
        return found

    def release(self) -> None:
        """Do nothing, although this is called to free memory: making the codes again would take long."""

    @property
    def kernel(self) -> str:
        """The kernel that the codes are packed for."""
        return self._held[0]

    def written(self) -> list[WrittenCodes]:
        """Return the codes as bytes."""
        parts = []
        for (begin, end), packed in zip(self.slices, self._held[1], strict=True):
            to = np.empty(packed.nbytes, np.uint8)
            packed.write(to)
            parts.append(WrittenCodes(begin, end, to))
        return parts


def _windows(slices: list[tuple[int, int]]) -> list[list[tuple[int, int]]]:
    """Divide slices into windows, whose rows are put in order and packed while they are in the page cache."""
    begin, end = slices[0]
    size = max(1, window_of(slices[-1][1]) // (end - begin))
    return [slices[at : at + size] for at in range(0, len(slices), size)]


def checksum_of(rows: Rows) -> int:
    """Return the CRC-32 of C-contiguous rows."""
    return zlib.crc32(rows.view(np.uint8).data)
