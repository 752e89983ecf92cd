"""Packed copies of rows that are kept between searches, by precision and stride."""

from __future__ import annotations

from typing import Any

from tonari.cuda.streams import Written
from tonari.exact.cuda.rows.form import DeviceForm
from tonari.exact.cuda.rows.pack import PackedPoints, new_flags, pack_points


class PackedCopies:
    """Packed copies of rows on one GPU, each made when it is first asked for.

    Parameters
    ----------
    rows : tensor of shape (n, d)
    form : DeviceForm
    flags : int64 tensor of shape (3,)
        Output: as for ``pack_points``.
    """

    def __init__(self, rows: Any, form: DeviceForm, flags: Any) -> None:
        self._rows, self._form, self._flags = rows, form, flags
        self._made: dict[tuple[str, int], tuple[PackedPoints, Written]] = {}

    def get(self, precision: str, stride: int) -> PackedPoints:
        """Return the packed copy of every stride-th row, for use on the current stream."""
        key = precision, stride
        if key not in self._made:
            flags = self._flags if stride == 1 else new_flags(self._rows.device)  # samples number rows differently
            made = pack_points(self._rows[::stride], self._form, precision, flags)
            self._made[key] = made, made.written()
        packed, written = self._made[key]
        written.read()
        return packed

    def forget(self, precision: str) -> None:
        """Drop the copies of a precision."""
        self._made = {key: made for key, made in self._made.items() if key[0] != precision}

    def forget_samples(self) -> None:
        """Drop the copies of some of the rows."""
        self._made = {key: made for key, made in self._made.items() if key[1] == 1}


class Copied:
    """Prepared points with packed copies of the rows that are screened; a subclass sets both attributes."""

    _copies: PackedCopies
    _written: Written  # of everything but the copies

    def read(self) -> None:
        """Make the current stream wait until all of this is written."""
        self._written.read()

    def packed(self, precision: str, stride: int = 1) -> PackedPoints:
        """Return the packed copy of every stride-th row, for use on the current stream."""
        return self._copies.get(precision, stride)

    def forget(self, precision: str) -> None:
        """Drop the packed copies of a precision."""
        self._copies.forget(precision)
