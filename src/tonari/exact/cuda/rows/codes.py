"""Codes: contracted rows in int8, one byte per coordinate, with the measured errors of rounding (docs/exactness.md).

    f(x)    contracted row (contraction.py) with a scale of its own, which makes one step of the codes 1;
            the directions are rotated at random, so that no coordinate is much larger than the others
    g(x)    f(x) with a constant subtracted from the length of the residual, which is never negative
    c(x)    g(x) rounded to whole numbers from -127 to 127

A distance of codes exceeds the distance of contracted rows by at most apart(q) + apart(x), and the squares, products
and sums of codes are whole numbers that int32 and float32 represent. A point beyond this range is a candidate of every
query. Queries are clamped, so that no query is beyond the range.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tonari.core.draws import Purpose, derived_seed
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
from tonari.exact.cuda.rows.pack import PackedPoints, PackedQueries, packed_bytes, packed_row_bytes, room_for
from tonari.select.cuda.survivors import power_of_two

MOST_CODED = 512  # coordinates: products of codes are then below 2^23, and float32 represents twice as much
LARGEST_CODE = 127.0


def code_columns(d: int) -> int:
    """Return the usual number of coordinates of a code, for rows of d dimensions.

    >>> code_columns(128), code_columns(20)
    (64, 19)
    """
    return min(tuning.CODE_COLUMNS, d - 1)


def codes_bytes(n: int, p: int) -> int:
    """Return the bytes of the codes of n points in p coordinates.

    >>> codes_bytes(1280, 64) / 1280
    68.0625
    """
    return packed_bytes(n, p, "int8")


def coding_bytes(d: int, p: int) -> int:
    """Return the scratch bytes for the codes of a block of points."""
    return max(1, tuning.FORM_VALUES // d) * (contracted_row_bytes(p) + 8)


@dataclass(frozen=True)
class Coding:
    """A map from rows to codes.

    Attributes
    ----------
    by : Contraction
    shift : float64 tensor (1,)
        Subtracted from the last coordinate, the length of the residual.
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
    packed : PackedQueries
        c(q); their norms and errors are 0, as codes of points have none.
    apart : float64 tensor (m,)
        A bound on the distance of c(q) from the contracted row; +inf for a row that cannot be contracted.
    """

    rows: ContractedRows
    packed: PackedQueries
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
    directions = principal(product_of(rows.mT, rows), p - 1) @ _rotation(p - 1, rows.device)
    along = rows @ directions
    rest = ((rows * rows).sum(1) - (along * along).sum(1)).clamp_min(0).sqrt()
    # A few rows far away would move the mean, and make the steps of all others long.
    middle = along.median(0).values
    along, origin = along - middle, origin + directions @ middle
    shift = (rest.quantile(1 - tuning.CODE_NEARLY_ALL) + rest.quantile(tuning.CODE_NEARLY_ALL)) / 2
    largest = torch.maximum(along.abs().amax(1), (rest - shift).abs())
    reach = torch.minimum(largest.amax(), tuning.CODE_FARTHEST * largest.quantile(tuning.CODE_NEARLY_ALL))
    factor = torch.where(reach > 0, LARGEST_CODE / (tuning.CODE_MARGIN * reach), 1.0).clamp(2.0**-400, 2.0**400)
    scaled = DeviceForm(metric, form.d, form.centre, form.scale * factor)
    return Coding(with_directions(scaled, directions, origin * factor), (shift * factor)[None])


def code_points(points: Any, coding: Coding, flags: Any, *, first: int, room: PackedPoints) -> Any:
    """Write the codes of some points; return the largest distance of a code from its row, and the points beyond range.

    Parameters
    ----------
    points : tensor (n, d)
        As for :func:`tonari.exact.cuda.rows.pack.pack_points`.
    coding : Coding
    flags : int64 tensor (3,)
        Output: lowered to the first row that searches refuse.
    first : int
        The row number that the flags report for ``points[0]``.
    room : PackedPoints
        Output for the same number of points; the padding of its last tile is written too.

    Returns
    -------
    float64 tensor (1,), and int64 tensor (1,)
    """
    import torch

    n, d = points.shape
    farthest = torch.zeros(1, dtype=torch.float64, device=points.device)
    beyond = torch.zeros(1, dtype=torch.int64, device=points.device)
    room.e1.zero_()
    room.e2.zero_()
    room.values[n:] = 0
    room.low[n:] = float("inf")
    block = max(1, tuning.FORM_VALUES // d)
    for begin in range(0, n, block):
        here = slice(begin, min(begin + block, n))
        made = contract(points[here], coding.by, flags, first=first + begin)
        apart = torch.empty_like(made.errors)
        _round(made, coding, room.values[here], apart, {"low_ptr": room.low[here]}, points=True)
        farthest = torch.maximum(farthest, apart.amax()[None])
        beyond += (apart < 0).sum()
    return farthest, beyond


def code_queries(queries: Any, coding: Coding, flags: Any, *, first: int) -> CodedQueries:
    """Return the codes of queries, without waiting for the device; see :func:`code_points`."""
    import torch

    m, p, device = len(queries), coding.by.p, queries.device
    made = contract(queries, coding.by, flags, first=first)
    codes = torch.empty((m, packed_row_bytes(p, "int8")), dtype=torch.int8, device=device)
    apart, squares, errors = (torch.empty_like(made.errors) for _ in range(3))
    rounded = torch.empty_like(made.values)
    out = {"squares_ptr": squares, "rounded_ptr": rounded, "rounded_errors_ptr": errors}
    _round(made, coding, codes, apart, out, points=False)
    none = torch.zeros(m, dtype=torch.float32, device=device)
    return CodedQueries(ContractedRows(rounded, errors), PackedQueries(codes, none, none, squares), apart)


def codes_for(n: int, p: int, device: Any) -> PackedPoints:
    """Allocate the codes of n points, uninitialised."""
    return room_for(n, p, "int8", device)


def _rotation(count: int, device: Any) -> Any:
    """Return a random orthogonal matrix, the same for every call."""
    import torch

    random = torch.Generator(device=device).manual_seed(derived_seed(1, Purpose.DIRECTIONS))
    return torch.linalg.qr(torch.randn((count, count), dtype=torch.float64, device=device, generator=random)).Q


def _round(made: ContractedRows, coding: Coding, codes: Any, apart: Any, out: dict[str, Any], *, points: bool) -> None:
    from tonari.exact.cuda.kernels.rows.round_codes import round_codes_kernel

    n, p = made.values.shape
    sides = ("low_ptr", "squares_ptr", "rounded_ptr", "rounded_errors_ptr")
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
        constants={"POINTS": points, "ROWS": tuning.CODE_ROWS, "COLUMNS": power_of_two(codes.shape[1])},
        warps=4,
    )
