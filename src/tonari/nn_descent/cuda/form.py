"""The form of the points for the initial lists: float16 rows whose squared L2 distances approximate the metric's order.

    euclidean, sqeuclidean                     centred
    elementwise metrics                        centred; the order is only similar to that of the metric
    cosine, correlation                        each row divided by its norm; for correlation, after subtracting its mean
    inner_product                              not centred

Except for cosine and correlation, rows are also scaled to a fixed largest magnitude. The score of a pair is
query term + member term - 2 <q, x>, which is nonnegative up to rounding: the terms are squared norms, or 2 |q| max |x|
and 0 for inner_product.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch

from tonari.cuda.launch import launch
from tonari.metrics import get_metric
from tonari.nn_descent import tuning
from tonari.nn_descent.memory import ranges_of

STEP = 32  # rows are padded with zeros to a multiple of this many columns
SHORT = 128  # maximum number of columns of rows that the kernels load whole
_LARGEST = 256.0  # largest absolute value of the scaled rows


class Form(NamedTuple):
    """Points transformed for the initial lists; see the module docstring.

    Attributes
    ----------
    rows : float16 tensor of shape (n, d rounded up to a multiple of STEP)
    query_terms, member_terms : float32 tensors of shape (n,)
    """

    rows: Any
    query_terms: Any
    member_terms: Any


def step_of(width: int) -> int:
    """Return the number of columns that a kernel loads in one step: all columns of a short row, otherwise a block."""
    if width <= SHORT:
        return 1 << (width - 1).bit_length()
    return 64 if width % 64 == 0 else STEP


def form_of(points: Any, metric: str) -> Form:
    """Compute the form of points, a tensor of shape (n, d) with finite values and contiguous columns."""
    from tonari.nn_descent.cuda.kernels.form import form_kernel

    n, d = points.shape
    width = -(-d // STEP) * STEP
    rows = torch.empty((n, width), dtype=torch.float16, device=points.device)
    record = get_metric(metric)
    centre = scale = None
    if not record.angular:
        centre, scale = _range_of(points, moved=not record.products)
    tile = _rows_of_a_program(points.device)
    launch(
        form_kernel,
        -(-n // tile),
        {
            "points_ptr": points,
            "centre_ptr": centre,
            "scale_ptr": scale,
            "rows_ptr": rows,
            "n": n,
            "d": d,
            "stride": points.stride(0),
            "width": width,
        },
        constants={"ANGULAR": record.angular, "CENTRED": record.centred, "ROWS": tile, "STEP": STEP},
        warps=tuning.FORM_WARPS,
    )
    return Form(rows, *terms_of(rows, products=record.products))


def terms_of(rows: Any, *, products: bool) -> tuple[Any, Any]:
    """Compute the query terms and member terms of transformed rows, for inner products or squared L2 distances."""
    from tonari.nn_descent.cuda.kernels.form import squares_kernel

    n, width = rows.shape
    squares = torch.empty(n, dtype=torch.float32, device=rows.device)
    tile = _rows_of_a_program(rows.device)
    launch(
        squares_kernel,
        -(-n // tile),
        {"rows_ptr": rows, "squares_ptr": squares, "n": n, "width": width},
        constants={"ROWS": tile, "STEP": STEP},
        warps=tuning.FORM_WARPS,
    )
    if products and rows.device.type == "meta":  # a rehearsal skips the rest, whose imports take seconds
        return squares, squares.new_empty(n)
    if products:
        norms = squares.sqrt()
        return 2 * norms * norms.amax(), torch.zeros_like(squares)
    return squares, squares


def _rows_of_a_program(device: Any) -> int:
    """Return the rows per program: 32 on a GPU; more in Triton's interpreter, where every program costs much time."""
    return 4096 if device.type == "cpu" else 32


def _range_of(points: Any, *, moved: bool) -> tuple[Any, Any]:
    """Return the centre and the scale of the form.

    The centre is the mean row (zeros unless `moved`). The scale maps the largest absolute value to _LARGEST.
    """
    from tonari.nn_descent.cuda.kernels.form import range_kernel

    n, d = points.shape
    tile, chunks = _rows_of_a_program(points.device), ranges_of(n)
    low, high, total = torch.empty((3, chunks, d), dtype=torch.float64, device=points.device)
    launch(
        range_kernel,
        chunks * -(-d // STEP),
        {
            "points_ptr": points,
            "low_ptr": low,
            "high_ptr": high,
            "sum_ptr": total,
            "n": n,
            "d": d,
            "stride": points.stride(0),
            "chunks": chunks,
        },
        constants={"ROWS": tile, "STEP": STEP},
        warps=tuning.FORM_WARPS,
    )
    if points.device.type == "meta":  # a rehearsal skips the rest, whose imports take seconds
        return total[0], total[0, :1]
    centre = total.sum(0) / n if moved else torch.zeros(d, dtype=torch.float64, device=points.device)
    largest = torch.maximum(high.amax(0) - centre, centre - low.amin(0)).amax()
    scale = torch.where(largest > 0, _LARGEST / largest, 1.0).clamp(max=torch.finfo(torch.float64).max)
    return centre, scale.view(1)
