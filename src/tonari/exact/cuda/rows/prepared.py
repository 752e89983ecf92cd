"""Prepared points: the state that searches of the same points share, with one interface wherever the rows are.

    DevicePoints            all or some of the points, on one device         attempts/first.py
    BytePoints              the same, in int8                                attempts/as_bytes.py
    ContractedPoints        on one device, in fewer dimensions               attempts/contracted.py
    ScreenedPoints          packed on one device, rows in host memory        routes/host_refine.py
    HostContractedPoints    the same, in fewer dimensions                    routes/host_contracted.py
    CodedPoints             the same, in codes of one byte per coordinate    routes/codes/points.py

Points in fewer dimensions are also :class:`Contracted`. Points with rows on the device have a search of their own
(``Searchable`` in attempts/first.py). Two more classes wrap prepared points and do not have this interface:
PreparedOnce (routes/resident.py) leaves out copies of rows, and SpreadPoints (routes/multi_gpu.py) has one part per
device.
"""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from tonari.cuda.streams import Written
from tonari.exact.cuda.rows.contraction import ContractedRows, Contraction
from tonari.exact.cuda.rows.form import DeviceForm
from tonari.exact.cuda.rows.pack import PackedPoints, new_flags, pack_points


class Copies(Protocol):
    """Packed copies of rows on one device."""

    def packed(self, precision: str, stride: int = 1) -> PackedPoints:
        """Return the packed copy of every stride-th row, for use on the current stream."""

    def forget_samples(self) -> None:
        """Drop the packed copies of samples, and keep those of all rows."""


@runtime_checkable
class Prepared(Protocol):
    """Points that can be screened.

    Attributes
    ----------
    points : tensor or C-contiguous array of shape (n, d)
        The original rows. Refinement reads them, so they must not change.
    form : DeviceForm
    flags : int64 tensor of shape (3,)
        The first rows that are not finite, too large, or negative; see ``inputs.check_flags``.
    copies : Copies
        Packed copies of the screened rows.
    written : Written
        The writes of all other attributes, except `copies`; another stream waits for them before it reads.
    """

    points: Any
    form: DeviceForm
    flags: Any
    written: Written

    @property
    def copies(self) -> Copies:
        """Packed copies of the rows that are screened."""


@runtime_checkable
class Contracted(Prepared, Protocol):
    """Points whose contracted rows, which have fewer coordinates, are screened.

    Attributes
    ----------
    by : Contraction
    rows : ContractedRows
    farthest : float64 tensor of shape (1,)
        The largest error bound of any contracted row.
    """

    by: Contraction
    rows: ContractedRows
    farthest: Any


class PackedCopies:
    """Packed copies of rows on one GPU, each made at its first use.

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

    def packed(self, precision: str, stride: int = 1) -> PackedPoints:
        key = precision, stride
        if key not in self._made:
            # A sample's row numbers are not those of the points.
            flags = self._flags if stride == 1 else new_flags(self._rows.device)
            fresh = pack_points(self._rows[::stride], self._form, precision, flags)
            self._made[key] = fresh, fresh.written()
        packed, written = self._made[key]
        written.read()
        return packed

    def forget(self, precision: str) -> None:
        """Drop all packed copies at a precision."""
        self._made = {key: made for key, made in self._made.items() if key[0] != precision}

    def forget_samples(self) -> None:
        self._made = {key: made for key, made in self._made.items() if key[1] == 1}


class OneCopy:
    """One packed copy of all rows, at a single precision; samples are taken from this copy."""

    def __init__(self, whole: PackedPoints) -> None:
        self._made = {1: (whole, whole.written())}

    def packed(self, precision: str, stride: int = 1) -> PackedPoints:
        if stride not in self._made:
            part = self.packed(precision).every(stride)
            self._made[stride] = part, part.written()
        packed, written = self._made[stride]
        written.read()
        return packed

    def forget_samples(self) -> None:
        self._made = {1: self._made[1]}
