"""The argument `codes` of an Index: on CUDA a route; on the CPU codes in memory of rows that stay in a file."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tonari import inputs, io
from tonari.api import tuning as api_tuning
from tonari.core.errors import Unsupported
from tonari.core.process.isa import chosen_isa
from tonari.core.process.progress import ProgressLike
from tonari.exact.cpu.rows.boxes import Boxes, WrittenBoxes, boxes_bytes
from tonari.exact.cpu.rows.code_forms import CodeForm, choose_form, overrides_of
from tonari.exact.cpu.rows.codes import CodedPoints, WrittenCodes, checksum_of
from tonari.exact.plan import ExactPlan
from tonari.inputs.arrays.rows import check_shape
from tonari.io.stored import StoredRows
from tonari.methods import tuning
from tonari.methods.call import Call
from tonari.methods.places.place import Place
from tonari.metrics import Metric

_OTHERS = "'auto', 'int8', or without codes: route='host_refine' and form_dim=64 (float32), or route='streamed'"


def with_codes(codes: str, metric: Metric, place: Place, overrides: dict[str, Any]) -> dict[str, Any]:
    """Return the fields to set in every plan of an Index with these codes.

    Parameters
    ----------
    codes : str
        "auto" sets nothing; "int8" sets the route "codes".
    metric : Metric
        The metric that compares transformed rows.
    place : Place
    overrides : dict
        The plan fields that the caller sets.

    Raises
    ------
    ValueError, Unsupported
        The codes are unknown, or not available for this metric.
    """
    if codes == "auto":
        return overrides
    if codes in ("float16", "int4"):
        raise Unsupported(f"codes={codes!r}: there are no such codes yet; pass {_OTHERS}")
    if not (metric.squares or metric.angular):
        raise Unsupported(
            f"codes='int8': there are none for metric={metric.name!r}, only for euclidean, sqeuclidean, cosine and "
            "correlation; leave codes out"
        )
    route = overrides.get("route", "codes")
    if route != "codes":
        raise ValueError(f"codes='int8' and route={route!r}: leave one of them out")
    return overrides | {"route": "codes"}


Rows = npt.NDArray[Any]

_FIX = "make the Index again from the rows as they are now"


class CodedState(NamedTuple):
    """The codes of an Index as plain values, which a file or a pickle can hold.

    Attributes
    ----------
    codes : str
        The name of the form of codes.
    stored : StoredRows, optional
        The position of the rows in a file.
    rows : array, optional
        The rows, if `stored` is None.
    checksums : list of (int, int, int)
        Begin, end and CRC-32 of slices of the rows.
    centre, scale, directions
        As in :class:`tonari.exact.cpu.rows.codes.CodeForm`.
    kernel : str
        The kernel that the codes are packed for.
    written : sequence of WrittenCodes
        The packed codes of each slice.
    boxes : WrittenBoxes, optional
        The order of the points, and the boxes around their codes.
    """

    codes: str
    stored: StoredRows | None
    rows: Rows | None
    checksums: list[tuple[int, int, int]]
    centre: list[float]
    scale: float
    directions: npt.NDArray[np.float64] | None
    kernel: str
    written: Sequence[WrittenCodes]
    boxes: WrittenBoxes | None


class CodedRows:
    """The rows of an Index with `codes`.

    Attributes
    ----------
    codes : str
        The name of the form of codes.
    rows : array of shape (n, d)
        The original rows, which need not be contiguous in memory.
    stored : StoredRows, optional
        Their position in a file.
    form : CodeForm
    points : CodedPoints
        The codes, once they are prepared.
    """

    def __init__(self, codes: str, rows: Rows, stored: StoredRows | None, form: CodeForm) -> None:
        self.codes, self.rows, self.stored, self.form = codes, rows, stored, form
        self.points: CodedPoints | None = None
        self._checksums: list[tuple[int, int, int]] = []
        self._written: tuple[str, Sequence[WrittenCodes], Boxes | None] = ("", (), None)
        self._unchanged = inputs.Unchanged(rows) if stored is None and inputs.can_change(rows) else None

    @property
    def beside(self) -> int:
        """The bytes of memory that order and boxes take, beside the codes and a search."""
        return 0 if self.form.boxes is None else boxes_bytes(*self.rows.shape)

    @property
    def overrides(self) -> dict[str, Any]:
        """The plan fields that make a search use the codes."""
        return overrides_of(self.form.columns, self.form.isa)

    def prepare(self, points: Rows, plan: ExactPlan, progress: ProgressLike) -> CodedPoints:
        """Make the codes in one pass over the rows, or restore saved codes if they were made for the same kernel."""
        kernel, written, boxes = self._written
        codes = written if kernel == plan.kernels[plan.precisions[0]] else None
        self.points = CodedPoints(points, plan, self.form, progress, codes, boxes if codes else None)
        self._checksums = self.points.checksums or self._checksums
        self._written = "", (), None
        return self.points

    def check(self, queries: Any = None) -> None:
        """Raise RuntimeError if sampled values, or the size or time of the file, show that rows have changed."""
        if self._unchanged is not None:
            self._unchanged.check(queries)
        changed = "" if self.stored is None else self.stored.changed()
        if changed:
            raise self._error(changed)

    def state(self) -> CodedState:
        """Return the codes, and the rows or their position in a file, as plain values."""
        assert self.points is not None
        rows = self.rows if self.stored is None else None
        centre, scale, directions = self.form[1:4]
        packed = self.points.kernel, self.points.written(), WrittenBoxes.of(self.points.boxes)
        return CodedState(self.codes, self.stored, rows, self._checksums, centre, scale, directions, *packed)

    @classmethod
    def of_state(cls, state: CodedState, metric: str) -> CodedRows:
        """Restore rows and codes from a state, after comparing the rows in a file with their checksums.

        Raises
        ------
        FileNotFoundError
            The file of the rows is gone.
        RuntimeError
            The rows have changed.
        """
        boxes = None if state.boxes is None else state.boxes.restored(metric, state.centre, state.scale)
        made = None if boxes is None else boxes.made
        form = CodeForm.of(metric, state.centre, state.scale, state.directions, made)
        stored, rows = state.stored, state.rows
        if stored is not None:
            now = _stamped(stored)
            rows = now.mapped()
        assert rows is not None
        if state.kernel.endswith("/avx512") and chosen_isa() == "amx":
            form = form._replace(isa="avx512")  # the codes were made for less memory than AMX needs
        coded = cls(state.codes, rows, stored, form)
        if stored is not None:
            coded._compare(now.time == stored.time, state.checksums)
            coded.stored = now
        coded._checksums, coded._written = state.checksums, (state.kernel, state.written, boxes)
        return coded

    def _compare(self, same_time: bool, checksums: list[tuple[int, int, int]]) -> None:
        """Compare rows with their checksums: all rows, or a few slices if the file's modification time is unchanged."""
        step = max(1, (len(checksums) - 1) // (api_tuning.CHECKED_SLICES - 1)) if same_time else 1
        for begin, end, checksum in checksums[::step]:
            if checksum_of(np.ascontiguousarray(self.rows[begin:end])) != checksum:
                raise self._error(f"holds other rows from {begin} to {end - 1}")

    def _error(self, changed: str) -> RuntimeError:
        assert self.stored is not None
        return RuntimeError(f"points: the file {self.stored.path} {changed} since its codes were made; {_FIX}")


def _stamped(stored: StoredRows) -> StoredRows:
    """Return the position of rows with the present modification time of their file.

    Raise RuntimeError if the size of the file has changed.
    """
    try:
        about = os.stat(stored.path)
    except FileNotFoundError:
        raise FileNotFoundError(
            f"{stored.path}: no such file; the Index has codes of its rows, and reads the rows from it"
        ) from None
    if about.st_size != stored.size:
        raise RuntimeError(
            f"points: the file {stored.path} has {about.st_size} bytes, it had {stored.size} when its codes were made; "
            f"{_FIX}"
        )
    return dataclasses.replace(stored, time=about.st_mtime_ns)


def is_path(points: Any) -> bool:
    """Whether `points` is the path of a file."""
    return isinstance(points, str | os.PathLike)


def opened(points: Any) -> Any:
    """Map the rows of a file for reads in any order."""
    rows = io.read(Path(points))
    check_shape(rows.shape, "points")
    if not isinstance(rows, np.memmap):
        fix = f"convert it first: tonari convert {points} points.npy"
        raise ValueError(f"{points}: codes= needs a file that can be mapped, and this one is loaded whole; {fix}")
    stored = StoredRows.of(rows) if rows.dtype.isnative and rows.strides[1] == rows.itemsize else None
    return rows if stored is None else stored.mapped()


def refuse_unsupported(codes: str, metric: Metric, call: Call, *, copy: bool, changed: bool) -> None:
    """Raise Unsupported if an Index on the CPU cannot have codes with these arguments."""
    why = ""
    if codes not in ("auto", "int8"):
        why = "the CPU has codes in int8; use codes='int8' or 'auto'"
    elif changed:
        why = "rows that are transformed first have no codes; transform the rows, and search them by the other metric"
    elif metric.bits or metric.elementwise:
        names = "'euclidean', 'sqeuclidean', 'cosine', 'correlation' and 'inner_product'"
        why = f"metric={metric.name!r} has no codes, only {names}; search the rows of tonari.io.read(path)"
    elif call.method not in ("auto", "exact"):
        why = f"method={call.method!r} searches no codes; use method='exact' or 'auto'"
    elif copy:
        why = "copy=True would copy the rows, which codes= leaves in place; leave copy out"
    if why:
        raise Unsupported(f"codes={codes!r}: {why}")


def rows_in_place(points: Any) -> Rows:
    """Check that rows can be searched without a copy, and return them; they need not be contiguous."""
    if (
        type(points) in (np.ndarray, np.memmap)
        and points.ndim == 2
        and points.dtype.isbuiltin == 1  # the dtype in the byte order of this machine
        and inputs.dtype_name(points.dtype) in inputs.ACCEPTED_NAMES
        and points.strides[1] == points.itemsize
        and points.strides[0] >= points.shape[1] * points.itemsize
        and points.flags.aligned
    ):
        check_shape(points.shape, "points")
        plain: Rows = points.view(np.ndarray)
        return plain
    if not hasattr(points, "dtype"):
        raise TypeError(
            "points: codes= leaves rows in place, so it needs a path, a memory map or an array, got "
            f"{type(points).__name__}; write the rows to a file first, with tonari.io.write"
        )
    rows = inputs.as_rows(points, "points", check_values=False)
    if not inputs.shares_memory(rows, points):
        raise ValueError(
            f"points: codes= leaves rows in place, so it needs rows in C order and in one of the dtypes "
            f"{', '.join(inputs.ACCEPTED_NAMES)} of this machine's byte order; got {inputs.name_of_dtype(points)} of "
            "another layout, which would be copied to memory; convert them first: tonari convert, or tonari.io.write"
        )
    return rows


def coded_rows(points: Any, codes: str, call: Call, given: dict[str, Any]) -> CodedRows:
    """Choose the form of the codes of rows.

    Parameters
    ----------
    points : array of shape (n, d)
        The original rows.
    codes : str
        The argument of the Index: "auto" or "int8".
    call : Call
    given : dict
        Fields of the plan that the caller sets; only `form_dim`, the number of columns of the codes, may be set.
    """
    others = sorted(set(given) - {"form_dim"})
    if others:
        raise ValueError(f"codes={codes!r} sets {', '.join(others)} itself; leave it out, only form_dim may be set")
    rows = rows_in_place(points)
    stored = StoredRows.of(points) if isinstance(points, np.ndarray) else None
    some, k = rows[: api_tuning.CODED_QUERIES], min(tuning.USUAL_K, len(rows))
    problem = dataclasses.replace(call, progress=False).problem(rows, some, k)
    return CodedRows("int8", rows, stored, choose_form(rows, problem, given.get("form_dim")))
