"""Codes: contracted rows in int8, one byte per coordinate, with the measured errors of rounding (docs/exactness.md).

    f(x)    contracted row (contraction.py), scaled so that one step of the codes is 1;
            the directions are rotated at random, so that no coordinate is much larger than the others
    g(x)    f(x) with a constant subtracted from the length of the residual, which is never negative
    c(x)    g(x) rounded to whole numbers from -127 to 127

A distance of codes exceeds the distance of contracted rows by at most apart(q) + apart(x). A few more columns contain
the squared length of c(x), so that a product of int8 alone gives the score of a pair (kernels/rows/round_codes.py).

A point beyond the range of codes is marked; it is a candidate of every query, and no screen needs to find it. Queries
are clamped to the range.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tonari.core.rows.draws import Purpose, derived_seed
from tonari.cuda.compiling.rehearsal import product_of
from tonari.cuda.launch import launch
from tonari.exact.cuda import tuning
from tonari.exact.cuda.rows.contraction import (
    ContractedRows,
    Contraction,
    contract,
    contracted_row_bytes,
    principal,
    sampled,
    with_directions,
)
from tonari.exact.cuda.rows.form import DeviceForm, make_form
from tonari.exact.cuda.rows.groups import POINT_TILE

LARGEST_CODE = 127
WIDTHS = (32, 64, 128, 256)  # possible sizes of a code in bytes
MOST_CODED = 247  # largest number of coordinates of a code


def code_columns(d: int) -> list[int]:
    """Return the possible numbers of coordinates in codes of d-dimensional rows: the usual one, then a smaller one.

    >>> code_columns(128), code_columns(20)
    ([123, 61], [19])
    """
    return list(dict.fromkeys(min(columns, d - 1) for columns in tuning.CODE_COLUMNS))


def code_width(p: int) -> int:
    """Return the bytes of a code of p coordinates, including the columns for its squared length.

    >>> code_width(30), code_width(61), code_width(62), code_width(247)
    (32, 64, 128, 256)
    """
    return next(width for width in WIDTHS if p + _folds(width) + 1 <= width)


def _folds(width: int) -> int:
    """Return the number of columns with weight 127, which hold most of a code's squared length."""
    return width // 32


def codes_bytes(n: int, p: int) -> int:
    """Return the size in bytes of the codes of n points in p coordinates.

    >>> codes_bytes(1280, 61) / 1280
    64.0
    """
    return -(-n // POINT_TILE) * POINT_TILE * code_width(p)


def coding_bytes(d: int, p: int) -> int:
    """Return the scratch bytes for making the codes of a block of points."""
    return max(1, tuning.FORM_VALUES // d) * (contracted_row_bytes(p) + 8)


@dataclass(frozen=True)
class FoldedCodes:
    """Codes of points with their squared lengths, in tiles of POINT_TILE points.

    Attributes
    ----------
    values : int8 (tiles * POINT_TILE, width)
        The codes and the columns of their squared lengths; padding has the least possible product with every query.
    p : int
        Coordinates.
    n : int
        Number of points.
    """

    values: Any
    p: int
    n: int

    @property
    def offset(self) -> int:
        """The number added to all products of codes; it exceeds half the squared length of any code."""
        return LARGEST_CODE * (LARGEST_CODE * _folds(self.values.shape[1]) + 1)

    def part(self, here: slice) -> FoldedCodes:
        """Return the codes of some points; ``here.start`` must be the first point of a tile."""
        n = here.stop - here.start
        end = here.start + -(-n // POINT_TILE) * POINT_TILE
        return FoldedCodes(self.values[here.start : end], self.p, n)

    def every(self, stride: int) -> FoldedCodes:
        """Return the codes of every stride-th point, arranged in tiles of their own."""
        n = -(-self.n // stride)
        codes = codes_for(n, self.p, self.values.device)
        codes.values[:n] = self.values[: self.n : stride]
        pad(codes)
        return codes


@dataclass(frozen=True)
class Coding:
    """A map from rows to codes: a contraction, and a shift of the residual.

    Attributes
    ----------
    by : Contraction
    shift : float64 tensor (1,)
        The number that is subtracted from the last coordinate, the length of the residual.
    """

    by: Contraction
    shift: Any


@dataclass(frozen=True)
class CodedQueries:
    """Queries as a screen of codes reads them.

    Attributes
    ----------
    rows : ContractedRows
        g(q) in float32, with bounds on the distance from the contracted row.
    values : int8 tensor (m, width)
        c(q), and the weights of the columns of squared lengths.
    squares : float64 tensor (m,)
        The squared length of c(q); +inf for a row that cannot be contracted.
    apart : float64 tensor (m,)
        A bound on the distance of c(q) from the contracted row; +inf for a row that cannot be contracted.
    """

    rows: ContractedRows
    values: Any
    squares: Any
    apart: Any


def coding_of(points: Any, metric: str, p: int) -> Coding:
    """Return a map to codes of p coordinates for these points, chosen by a sample, without waiting for the device.

    Parameters
    ----------
    points : tensor (n, d)
        As for :func:`tonari.exact.cuda.rows.form.make_form`; values that searches refuse count as 0.
    metric : str
        A metric of the families "squares" or "angles".
    p : int
        The number of coordinates, from 2 to min(d, MOST_CODED).
    """
    import torch

    form = make_form(points, metric)
    rows, origin = sampled(points, form)
    if points.device.type == "meta":  # a rehearsal; the steps below launch only torch's kernels
        return Coding(with_directions(form, principal(product_of(rows.mT, rows), p - 1), origin), origin[:1])
    directions = principal(product_of(rows.mT, rows), p - 1) @ _rotation(p - 1, rows.device)
    along = rows @ directions
    rest = ((rows * rows).sum(1) - (along * along).sum(1)).clamp_min(0).sqrt()
    # The median, because a few rows far away would move the mean and make the steps too long for all other rows.
    middle = along.median(0).values
    along, origin = along - middle, origin + directions @ middle
    shift = (rest.quantile(1 - tuning.CODE_NEARLY_ALL) + rest.quantile(tuning.CODE_NEARLY_ALL)) / 2
    largest = torch.maximum(along.abs().amax(1), (rest - shift).abs())
    reach = torch.minimum(largest.amax(), tuning.CODE_FARTHEST * largest.quantile(tuning.CODE_NEARLY_ALL))
    factor = torch.where(reach > 0, LARGEST_CODE / (tuning.CODE_MARGIN * reach), 1.0).clamp(2.0**-400, 2.0**400)
    scaled = DeviceForm(metric, form.d, form.centre, form.scale * factor)
    return Coding(with_directions(scaled, directions, origin * factor), (shift * factor)[None])


def code_points(points: Any, coding: Coding, flags: Any, *, first: int, room: FoldedCodes) -> Any:
    """Write the codes of some points; return each code's distance from its row, float64 (n,), -1 for marked points.

    Parameters
    ----------
    points : tensor (n, d)
        As for :func:`tonari.exact.cuda.rows.pack.pack_points`.
    coding : Coding
    flags : int64 tensor (3,)
        Output: lowered to the first row that searches refuse.
    first : int
        The row number that the flags report for ``points[0]``.
    room : FoldedCodes
        Output for the same number of points; the padding of its last tile is written too.
    """
    import torch

    n, d = points.shape
    apart = torch.empty(n, dtype=torch.float64, device=points.device)
    block = max(1, tuning.FORM_VALUES // d)
    for begin in range(0, n, block):
        here = slice(begin, min(begin + block, n))
        contracted = contract(points[here], coding.by, flags, first=first + begin)
        _round(contracted, coding, room.values[here], apart[here], {}, points=True)
    pad(room)
    return apart


def code_queries(queries: Any, coding: Coding, flags: Any, *, first: int) -> CodedQueries:
    """Return the codes of queries, without waiting for the device; see :func:`code_points`."""
    import torch

    m, p, device = len(queries), coding.by.p, queries.device
    contracted = contract(queries, coding.by, flags, first=first)
    codes = torch.empty((m, code_width(p)), dtype=torch.int8, device=device)
    # A rehearsal avoids torch.empty_like, whose first use imports modules for a second.
    apart, squares, errors = (contracted.errors.new_empty(contracted.errors.shape) for _ in range(3))
    rounded = contracted.values.new_empty(contracted.values.shape)
    out = {"squares_ptr": squares, "rounded_ptr": rounded, "rounded_errors_ptr": errors}
    _round(contracted, coding, codes, apart, out, points=False)
    return CodedQueries(ContractedRows(rounded, errors), codes, squares, apart)


def codes_for(n: int, p: int, device: Any) -> FoldedCodes:
    """Allocate the codes of n points, uninitialised."""
    import torch

    shape = -(-n // POINT_TILE) * POINT_TILE, code_width(p)
    return FoldedCodes(torch.empty(shape, dtype=torch.int8, device=device), p, n)


def pad(codes: FoldedCodes) -> None:
    """Write the padding of the last tile: rows with the least possible product with every query."""
    rest = codes.values[codes.n :]
    rest[:] = 0
    rest[:, codes.p : codes.p + _folds(rest.shape[1]) + 1] = -LARGEST_CODE


def _rotation(count: int, device: Any) -> Any:
    """Return a random orthogonal matrix, the same for every call."""
    import torch

    random = torch.Generator(device=device).manual_seed(derived_seed(1, Purpose.DIRECTIONS))
    return torch.linalg.qr(torch.randn((count, count), dtype=torch.float64, device=device, generator=random)).Q


def _round(made: ContractedRows, coding: Coding, codes: Any, apart: Any, out: dict[str, Any], *, points: bool) -> None:
    from tonari.exact.cuda.kernels.rows.round_codes import round_codes_kernel

    n, p = made.values.shape
    sides = ("squares_ptr", "rounded_ptr", "rounded_errors_ptr")
    launch(
        round_codes_kernel,
        -(-n // tuning.CODE_ROWS),
        {
            "values_ptr": made.values,
            "errors_ptr": made.errors,
            "shift_ptr": coding.shift,
            "codes_ptr": codes,
            "apart_ptr": apart,
            **dict.fromkeys(sides),
            **out,
            "n": n,
            "p": p,
            "width": codes.shape[1],
        },
        constants={
            "POINTS": points,
            "FOLDS": _folds(codes.shape[1]),
            "ROWS": tuning.CODE_ROWS,
            "COLUMNS": codes.shape[1],
        },
        warps=4,
    )
