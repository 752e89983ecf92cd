"""Pack rows: round them for the screen, and measure the error bounds for the certificate.

    int8      one product; elements rounded to integers of one byte, whose sums are exact
    float16   one product; elements rounded to float16
    split     x^ = hi + lo, two float16, and all four products: points [lo | hi | lo | hi], queries [lo | lo | hi | hi]
    float32   no product; elementwise metrics

In float16, queries are multiplied by -2 before they are packed, which is exact. Every error bound is measured on the
values that are packed (docs/exactness.md, "The GPU's screen").
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from tonari.cuda.launch import launch
from tonari.cuda.streams import Written
from tonari.exact.cuda import tuning
from tonari.exact.cuda.rows.form import DeviceForm
from tonari.exact.cuda.rows.groups import POINT_TILE
from tonari.exact.cuda.rows.tiles import width_of
from tonari.inputs.arrays.values import NO_ROW
from tonari.metrics import cuda_terms, get_metric

PRECISIONS = ("int8", "float16", "split", "float32")
ELEMENT_BYTES = {"int8": 1, "float16": 2, "split": 2, "float32": 4}

LARGEST_FLOAT16 = 60_000.0  # largest magnitude of a packed value; float16 ends at 65504
LARGEST_INT8 = 127.5  # largest |element + 1/2|, so that elements are from -128 to 127
LARGEST_FLOAT32 = 1e12  # largest magnitude of a packed float32, so that sums stay far below 1e30

# Outputs that the kernel writes only for points or only for queries; otherwise they are None.
_ONE_SIDE = ("low_ptr", "e1_ptr", "e2_ptr", "norm_ptr", "rest_ptr", "shift_ptr")
# Largest number of columns for which float32 sums of products have a bound: n <= 1/4 in docs/exactness.md.
MOST_COLUMNS = 2**20 - 16
MOST_INT8_COLUMNS = 2**16  # largest number of columns for which int32 represents all sums


@dataclass(frozen=True)
class PackedPoints:
    """Points as the screen reads them, in tiles of POINT_TILE.

    Attributes
    ----------
    values : float16 (tiles * POINT_TILE, width); int8 for "int8", float32 for "float32"
        The rounded rows; zeros beyond the points, beyond the columns, and in rows beyond range.
    low : float32 (tiles * POINT_TILE,)
        a(x') - e0, rounded down; -1e30 for a point beyond range, +inf beyond the points.
    e1, e2 : float32 (tiles,)
        The largest error terms of each tile, rounded up; rows beyond range do not count.
    n : int
        Number of points.
    """

    values: Any
    low: Any
    e1: Any
    e2: Any
    n: int

    @property
    def terms(self) -> dict[str, Any]:
        """The score terms and the error bounds of the points, as keyword arguments of kernels."""
        return {"low_ptr": self.low, "e1_ptr": self.e1, "e2_ptr": self.e2}

    def written(self) -> Written:
        """Return a marker for other streams to wait for; it follows all launched writes of these tensors."""
        return Written(self.values, self.low, self.e1, self.e2)

    def part(self, begin: int, n: int) -> PackedPoints:
        """Return points begin to begin + n; `begin` must be the first point of a tile."""
        tiles = slice(begin // POINT_TILE, -(-(begin + n) // POINT_TILE))
        rows = slice(begin, tiles.stop * POINT_TILE)
        return PackedPoints(self.values[rows], self.low[rows], self.e1[tiles], self.e2[tiles], n)

    def every(self, stride: int) -> PackedPoints:
        """Return every stride-th point, arranged in tiles of their own.

        The points of a new tile are taken from `stride` old tiles; its error bounds are the largest of these old tiles.
        """
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
    values : float16 (m, width); int8 for "int8", or float32 (m, d) for "float32"
        The rounded rows, times -2 for float16; zeros beyond the columns and in rows beyond range.
    norm, rest : float32 (m,)
        N and r of the error bound N e1 + r e2, rounded up; 0 for a row beyond range.
    shift : float64 (m,)
        The term of a squared distance that depends on the query alone, which scores leave out; +inf for a row beyond
        range, which is therefore never certified.
    """

    values: Any
    norm: Any
    rest: Any
    shift: Any

    def errors(self, rows: slice) -> dict[str, Any]:
        """Return the error factors of some queries, as keyword arguments of kernels."""
        return {"norm_ptr": self.norm[rows], "rest_ptr": self.rest[rows]}


def new_flags(device: Any) -> Any:
    """Return new flags, int64 (3,), which report no row; see :func:`tonari.inputs.check_flags`."""
    import torch

    return torch.full((3,), NO_ROW, dtype=torch.int64, device=device)


def packed_width(d: int, precision: str) -> int:
    """Return the number of columns of a packed row of d values.

    >>> [packed_width(100, precision) for precision in PRECISIONS]
    [128, 128, 448, 100]
    """
    if precision == "float32":
        return d
    return width_of(4 * d if precision == "split" else d, ELEMENT_BYTES[precision])


def packed_row_bytes(d: int, precision: str) -> int:
    """Return the size in bytes of a packed row of d values.

    >>> [packed_row_bytes(100, precision) for precision in PRECISIONS]
    [128, 256, 896, 400]
    """
    return packed_width(d, precision) * ELEMENT_BYTES[precision]


def packed_bytes(n: int, d: int, precision: str) -> int:
    """Return the bytes of n packed points: values, a term for each point, and two error bounds for each tile."""
    return -(-n // POINT_TILE) * (POINT_TILE * (packed_row_bytes(d, precision) + 4) + 8)


def query_bytes(d: int, precisions: tuple[str, ...]) -> int:
    """Return an upper bound on the bytes of a packed query, which consists of its values and three bounds."""
    return 16 + max(packed_row_bytes(d, precision) for precision in precisions)


def room_for(n: int, d: int, precision: str, device: Any) -> PackedPoints:
    """Allocate uninitialised packed points: n points of d values."""
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
        float32, float16, bfloat16, float64, uint8 or int8; ``stride(1) == 1``, any stride between rows.
    form : DeviceForm
        The form of the rows, on the device of the points.
    precision : str
        One of PRECISIONS: "float32" for elementwise metrics, "int8" for metrics of the family "squares" whose form has
        scale 1 and a centre of whole numbers, one of the others for all other metrics.
    flags : int64 tensor (3,)
        Output: lowered to the first row with NaN or infinity, with a value beyond 1e150, and with a negative value if
        the metric refuses these. Such rows are packed as beyond range.
    first : int
        The row number that the flags report for ``points[0]``.
    room : PackedPoints, optional
        Output for the same number of points, on their device; written and returned. Default: a new one.
    """
    n, d = points.shape
    packed = room_for(n, d, precision, points.device) if room is None else room
    _launch(points, form, precision, {"values_ptr": packed.values, **packed.terms}, flags, first, points=True)
    return packed


def pack_queries(queries: Any, form: DeviceForm, precision: str, flags: Any, *, first: int = 0) -> PackedQueries:
    """Pack queries for the screen, in one launch; for the parameters see :func:`pack_points`."""
    import torch

    m = len(queries)
    values = _empty_values(m, queries.shape[1], precision, queries.device)
    norm, rest = (torch.empty(m, dtype=torch.float32, device=queries.device) for _ in range(2))
    shift = torch.empty(m, dtype=torch.float64, device=queries.device)
    out = {"values_ptr": values, "norm_ptr": norm, "rest_ptr": rest, "shift_ptr": shift}
    _launch(queries, form, precision, out, flags, first, points=False)
    return PackedQueries(values, norm, rest, shift)


def _empty_values(height: int, d: int, precision: str, device: Any) -> Any:
    import torch

    dtype = {"int8": torch.int8, "float32": torch.float32}.get(precision, torch.float16)
    return torch.empty((height, packed_width(d, precision)), dtype=dtype, device=device)


def largest_element(d: int, precision: str, *, points: bool) -> float:
    """Return the largest magnitude of a form element that can be packed; -1 if rows have too many columns to be packed.

    >>> largest_element(128, "float16", points=False), largest_element(2**20, "split", points=True)
    (30000.0, -1.0)
    """
    if precision == "float32":
        return LARGEST_FLOAT32 if d <= 4 * MOST_COLUMNS else -1.0
    if precision == "int8":
        return LARGEST_INT8 if d <= MOST_INT8_COLUMNS else -1.0
    if d * (4 if precision == "split" else 1) > MOST_COLUMNS:
        return -1.0
    return LARGEST_FLOAT16 if points else LARGEST_FLOAT16 / 2


def _launch(
    rows: Any, form: DeviceForm, precision: str, out: dict[str, Any], flags: Any, first: int, *, points: bool
) -> None:
    from tonari.exact.cuda.kernels.rows.pack import pack_kernel

    tile, warps = (POINT_TILE, tuning.POINT_WARPS) if points else (tuning.QUERY_ROWS, tuning.QUERY_WARPS)
    n, d = rows.shape
    height, width = out["values_ptr"].shape
    metric, terms = get_metric(form.metric), cuda_terms(form.metric)
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
            "METRIC": metric.before_root,
            "SIZE": terms.size,
            "DIFFERENCE": terms.difference,
            "PRECISION": precision,
            "POINTS": points,
            "LIMIT": min(largest_element(d, precision, points=points), metric.largest),
            "STEP": math.gcd(d, rows.stride(0), 4),
            "ROWS": tile,
            "T": 4 if width == 16 else 8,
            "V": 4,
        },
        warps=warps,
    )
