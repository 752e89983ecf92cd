"""Packing: rows -> what the screen multiplies, and what the certificate has to know of it.

    float16   one product; elements rounded to float16
    split     x^ = hi + lo, two float16, and all four products: points [lo | hi | lo | hi], queries [lo | lo | hi | hi]
    float32   no product; elementwise metrics

Queries of products are packed times -2, a power of two. Every bound is measured on what was really packed
(docs/exactness.md, "The GPU's screen").
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from tonari.cuda.launch import launch
from tonari.cuda.streams import Written
from tonari.exact.cuda.form import DeviceForm
from tonari.exact.cuda.groups import POINT_TILE
from tonari.exact.cuda.screen import width_of
from tonari.inputs.values import NO_ROW
from tonari.metrics import cuda_terms, get_metric

PRECISIONS = ("float16", "split", "float32")

# Warps for a tile of points; queries come fewer to a program, so that small searches fill the card as well.
POINT_WARPS = 16
QUERY_ROWS, QUERY_WARPS = 16, 4
LARGEST_FLOAT16 = 60_000.0  # magnitude of a packed value; 65504 would do
LARGEST_FLOAT32 = 1e12  # so that no sum comes near 1e30
# Outputs of the kernel for points alone, or for queries alone: None for the others.
_ONE_SIDE = ("low_ptr", "e1_ptr", "e2_ptr", "norm_ptr", "rest_ptr", "shift_ptr")
# Columns of products beyond which float32 sums have no useful bound: n <= 1/4 in docs/exactness.md.
MOST_COLUMNS = 2**20 - 16


@dataclass(frozen=True)
class PackedPoints:
    """Points as the screen reads them, in tiles of POINT_TILE.

    Attributes
    ----------
    values : float16 (tiles * POINT_TILE, width), float32 for "float32"
        Zeros beyond the points, beyond the columns, and in rows beyond range.
    low : float32 (tiles * POINT_TILE,)
        a(x') less e0, rounded down; -1e30 for a point beyond range, +inf beyond the points.
    e1, e2 : float32 (tiles,)
        The largest of each tile, rounded up; rows beyond range do not count.
    n : int
        How many points there are.
    """

    values: Any
    low: Any
    e1: Any
    e2: Any
    n: int

    def written(self) -> Written:
        """The mark that what was launched so far wrote it."""
        return Written(self.values, self.low, self.e1, self.e2)

    def part(self, begin: int, n: int) -> PackedPoints:
        """Points begin to begin + n; `begin` is the first of a tile."""
        tiles = slice(begin // POINT_TILE, -(-(begin + n) // POINT_TILE))
        rows = slice(begin, tiles.stop * POINT_TILE)
        return PackedPoints(self.values[rows], self.low[rows], self.e1[tiles], self.e2[tiles], n)

    def every(self, stride: int) -> PackedPoints:
        """Every stride-th point; a tile of them takes the largest errors of the `stride` tiles that they come from."""
        import torch

        n = -(-self.n // stride)
        tiles = -(-n // POINT_TILE)
        values = self.values.new_zeros((tiles * POINT_TILE, self.values.shape[1]))
        low = self.low.new_full((tiles * POINT_TILE,), float("inf"))
        picked = self.low[::stride]
        values[: len(picked)], low[: len(picked)] = self.values[::stride], picked
        errors = [
            torch.nn.functional.pad(error, (0, tiles * stride - len(error))).view(tiles, stride).amax(1)
            for error in (self.e1, self.e2)
        ]
        return PackedPoints(values, low, errors[0], errors[1], n)


@dataclass(frozen=True)
class PackedQueries:
    """Queries as the screen reads them.

    Attributes
    ----------
    values : float16 (m, width), the rounded rows times -2; for "float32" float32, the rounded rows
        Zeros beyond the columns and in rows beyond range.
    norm, rest : float32 (m,)
        N and r, rounded up; 0 for a row beyond range.
    shift : float64 (m,)
        What the score leaves out (query_term); +inf for a row beyond range, so that nothing certifies it.
    """

    values: Any
    norm: Any
    rest: Any
    shift: Any


def new_flags(device: Any) -> Any:
    """Flags that no row has been noted in, int64 (3,): see :func:`tonari.inputs.check_flags`."""
    import torch

    return torch.full((3,), NO_ROW, dtype=torch.int64, device=device)


def packed_width(d: int, precision: str) -> int:
    """Columns of a packed row of d values.

    >>> [packed_width(100, precision) for precision in PRECISIONS]
    [128, 448, 100]
    """
    return {"float16": width_of(d), "split": width_of(4 * d), "float32": d}[precision]


def room_for(n: int, d: int, precision: str, device: Any) -> PackedPoints:
    """Room for n packed points of d values, not yet written to."""
    import torch

    tiles = -(-n // POINT_TILE)
    low = torch.empty(tiles * POINT_TILE, dtype=torch.float32, device=device)
    e1, e2 = (torch.empty(tiles, dtype=torch.float32, device=device) for _ in range(2))
    return PackedPoints(_empty_values(tiles * POINT_TILE, d, precision, device), low, e1, e2, n)


def pack_points(
    points: Any, form: DeviceForm, precision: str, flags: Any, *, first: int = 0, room: PackedPoints | None = None
) -> PackedPoints:
    """Pack points for the screen, in one launch.

    Parameters
    ----------
    points : tensor (n, d)
        float32, float16, bfloat16, float64, uint8 or int8; ``stride(1) == 1``, rows at any distance.
    form : DeviceForm
        On the device of the points.
    precision : str
        Of PRECISIONS: "float32" for elementwise metrics, one of the others for the others.
    flags : int64 tensor (3,)
        Lowered to the first row with NaN or infinity, with a value beyond 1e150, and with a negative one
        where the metric refuses that.
        Such rows are packed as beyond range.
    first : int
        Number of ``points[0]``, as flags have it.
    room : PackedPoints, optional
        For as many points, on their device; written and returned.
    """
    n, d = points.shape
    packed = room_for(n, d, precision, points.device) if room is None else room
    out = {"values_ptr": packed.values, "low_ptr": packed.low, "e1_ptr": packed.e1, "e2_ptr": packed.e2}
    _launch(points, form, precision, out, flags, first, POINT_TILE, POINT_WARPS, points=True)
    return packed


def pack_queries(queries: Any, form: DeviceForm, precision: str, flags: Any, *, first: int = 0) -> PackedQueries:
    """Pack queries for the screen, in one launch; parameters as for :func:`pack_points`."""
    import torch

    m = len(queries)
    values = _empty_values(m, queries.shape[1], precision, queries.device)
    norm, rest = (torch.empty(m, dtype=torch.float32, device=queries.device) for _ in range(2))
    shift = torch.empty(m, dtype=torch.float64, device=queries.device)
    out = {"values_ptr": values, "norm_ptr": norm, "rest_ptr": rest, "shift_ptr": shift}
    _launch(queries, form, precision, out, flags, first, QUERY_ROWS, QUERY_WARPS, points=False)
    return PackedQueries(values, norm, rest, shift)


def _empty_values(height: int, d: int, precision: str, device: Any) -> Any:
    import torch

    dtype = torch.float32 if precision == "float32" else torch.float16
    return torch.empty((height, packed_width(d, precision)), dtype=dtype, device=device)


def largest_element(d: int, precision: str, *, points: bool) -> float:
    """The largest magnitude of a form row's element that is packed; -1, which none is below, for rows too long.

    >>> largest_element(128, "float16", points=False), largest_element(2**20, "split", points=True)
    (30000.0, -1.0)
    """
    if precision == "float32":
        return LARGEST_FLOAT32 if d <= 4 * MOST_COLUMNS else -1.0
    if d * (4 if precision == "split" else 1) > MOST_COLUMNS:
        return -1.0
    return LARGEST_FLOAT16 if points else LARGEST_FLOAT16 / 2


def _launch(
    rows: Any,
    form: DeviceForm,
    precision: str,
    out: dict[str, Any],
    flags: Any,
    first: int,
    tile: int,
    warps: int,
    *,
    points: bool,
) -> None:
    from tonari.exact.cuda.kernels.pack import pack_kernel

    n, d = rows.shape
    height, width = out["values_ptr"].shape
    terms = cuda_terms(form.metric)
    launch(
        pack_kernel,
        -(-n // tile),
        {
            "rows_ptr": rows,
            "centre_ptr": form.centre,
            "scale_ptr": form.scale,
            **dict.fromkeys(_ONE_SIDE),
            **out,
            "flags_ptr": flags,
            "n": n,
            "height": height,
            "d": d,
            "stride": rows.stride(0),
            "width": width,
            "first_row": first,
        },
        constants={
            "METRIC": get_metric(form.metric).before_root,
            "SIZE": terms.size,
            "DIFFERENCE": terms.difference,
            "PRECISION": precision,
            "POINTS": points,
            "LIMIT": largest_element(d, precision, points=points),
            "STEP": math.gcd(d, rows.stride(0), 4),
            "ROWS": tile,
            "T": 4 if width == 16 else 8,
            "V": 4,
        },
        warps=warps,
    )
