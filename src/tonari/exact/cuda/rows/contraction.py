"""Contractions: rows of p coordinates whose distances never exceed those of the original rows (docs/exactness.md).

    f(x) = (V' z, |z - V V' z|)        z = x' - origin, the centred form row; V has p - 1 orthonormal columns

Let r = z - V V' z be the residual of a row. Since | |r_q| - |r_x| | <= |r_q - r_x|, distances satisfy

    |f(q) - f(x)|    <=  |q' - x'|                       for orthonormal V
    |f(q) - f(x)|^2  <=  (1 + e (1 + e)) |q' - x'|^2     for any V, with e >= |V' V - I|

Every V therefore gives correct bounds. The principal directions of a sample are used, because they leave few
candidates. f is computed in float64 and stored in float32, with a bound on the distance of each stored row from f.

Under the angular metrics, form rows have the length `scale`, and the squared distance |q' - x'|^2 is 2 scale^2 value.
If one of the rows is zero, the squared distance is at most 2 scale^2 value.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tonari.core.rows.draws import Purpose, derived_seed
from tonari.cuda.compiling.rehearsal import product_of
from tonari.cuda.launch import launch
from tonari.exact.cuda import tuning
from tonari.exact.cuda.rows.form import DeviceForm
from tonari.exact.cuda.rows.pack import new_flags
from tonari.metrics import get_metric

LARGEST = 1e12  # largest magnitude of the elements of a row that is contracted, so that all sums are finite
BEYOND = 1e6  # value of all elements of a row that cannot be contracted; too large for every precision


@dataclass(frozen=True)
class Contraction:
    """A map from centred and scaled rows to rows of p coordinates; except for rounding, it increases no distance.

    Attributes
    ----------
    form : DeviceForm
        The form of the original rows.
    directions : float64 tensor (d, p - 1)
    origin : float64 tensor (d,)
        Subtracted from form rows (rows/form.py).
    stretch : float64 tensor (1,)
        An upper bound of (``|f(q) - f(x)|`` / ``|q' - x'|``) - 1.
    """

    form: DeviceForm
    directions: Any
    origin: Any
    stretch: Any

    @property
    def p(self) -> int:
        """The number of coordinates."""
        return int(self.directions.shape[1]) + 1

    @functools.cached_property
    def screened(self) -> DeviceForm:
        """The form in which contracted rows are packed: squared distances, without centre or scale."""
        import torch

        device = self.origin.device
        centre = torch.zeros(self.p, dtype=torch.float64, device=device)
        return DeviceForm("sqeuclidean", self.p, centre, torch.ones(1, dtype=torch.float64, device=device))


@dataclass(frozen=True)
class ContractedRows:
    """Rows in p coordinates, and a bound on the error of each row.

    Attributes
    ----------
    values : float32 tensor (n, p)
        f(x) of each row, rounded to float32; all elements are BEYOND in a row that cannot be contracted.
    errors : float64 tensor (n,)
        An upper bound on the distance of each row of `values` from f(x); +inf for a row that cannot be contracted.
    """

    values: Any
    errors: Any

    def part(self, here: slice) -> ContractedRows:
        """Return the rows of a slice, without a copy."""
        return ContractedRows(self.values[here], self.errors[here])


def sample_rows(d: int) -> int:
    """Return the largest number of rows in the sample from which directions of d-dimensional rows are computed."""
    return max(1, min(tuning.DIRECTIONS_ROWS, tuning.DIRECTIONS_VALUES // d))


def contracted_row_bytes(p: int) -> int:
    """Return the bytes of a contracted row of p coordinates, with the bound on its error."""
    return 4 * p + 8


def contraction_bytes(d: int, p: int) -> int:
    """Return the scratch bytes for choosing a contraction, or for contracting a block of rows if that needs more.

    These bytes hold the sample and its square, or a block, in float64; the matrices of the iteration; and the
    directions.
    """
    rows = sample_rows(d)
    block = max(1, tuning.FORM_VALUES // d)
    return 8 * (max(2 * rows * d + 3 * d * d, block * (d + 3 * p)) + 6 * d * p)


def contraction_of(points: Any, form: DeviceForm, p: int) -> Contraction:
    """Return a contraction to p coordinates by the principal directions of a sample, without waiting for the device.

    Parameters
    ----------
    points : tensor (n, d)
        As for :func:`tonari.exact.cuda.rows.form.make_form`; values that searches refuse count as 0.
    form : DeviceForm
        The form of a metric of the families "squares" or "angles".
    p : int
        The number of coordinates, from 2 to d.
    """
    rows, origin = sampled(points, form)
    return with_directions(form, principal(product_of(rows.mT, rows), p - 1), origin)


def sampled(points: Any, form: DeviceForm) -> tuple[Any, Any]:
    """Return a sample of the points' form rows after subtracting its mean, and the mean; both are float64."""
    import torch

    n, d = points.shape
    sample = points[:: -(-n // sample_rows(d))]
    nowhere = torch.zeros(d, dtype=torch.float64, device=points.device)
    rows, _ = _form_rows(sample, form, nowhere, new_flags(points.device), 0)
    if points.device.type == "meta":  # a rehearsal skips the mean, whose first use imports modules for seconds
        return rows, nowhere
    origin = rows.mean(0)
    rows -= origin
    return rows, origin


def form_blocks(points: Any, form: DeviceForm, origin: Any) -> Iterator[tuple[Any, Any]]:
    """Yield blocks of the form rows of all points minus an origin, float64 (block, d), and their lengths.

    Rows that cannot be contracted are zeros with infinite lengths.
    """
    n, d = points.shape
    # Blocks are short, because callers store many values per row.
    block = max(1, min(tuning.FORM_VALUES // d, tuning.DIRECTIONS_ROWS))
    for begin in range(0, n, block):
        yield _form_rows(points[begin : begin + block], form, origin, new_flags(points.device), 0)


def contracted_room(n: int, p: int, device: Any) -> ContractedRows:
    """Allocate n contracted rows, uninitialised."""
    import torch

    values = torch.empty((n, p), dtype=torch.float32, device=device)
    return ContractedRows(values, torch.empty(n, dtype=torch.float64, device=device))


def contract(
    rows: Any, by: Contraction, flags: Any, *, first: int = 0, room: ContractedRows | None = None
) -> ContractedRows:
    """Return rows in p coordinates, without waiting for the device.

    Parameters
    ----------
    rows : tensor (n, d)
        As for :func:`tonari.exact.cuda.rows.pack.pack_points`.
    by : Contraction
    flags : int64 tensor (3,)
        Output: lowered to the first row that searches refuse, as by ``pack_points``.
    first : int
        The row number that the flags report for ``rows[0]``.
    room : ContractedRows, optional
        Output for the same number of rows, on their device; written and returned. Default: a new one.

    Notes
    -----
    Let w = 2^-53 and g = (d + p + 16) w. For any order of additions, the error of the product V' z is at most g
    sqrt(p) |z|, the error of the residual is at most twice that, and the relative error of its length is at most (d +
    4) w. The relative error of form rows, which comes from the norm of angular rows, is at most (d + 16) w. The sum of
    these errors is below 8 g sqrt(p) (|z| + |origin|).
    """
    from tonari.exact.cuda.kernels.rows.round_contracted import round_contracted_kernel

    n, d = rows.shape
    out = contracted_room(n, by.p, rows.device) if room is None else room
    block = max(1, tuning.FORM_VALUES // d)
    for begin in range(0, n, block):
        here = slice(begin, min(begin + block, n))
        z, lengths = _form_rows(rows[here], by.form, by.origin, flags, first + begin)
        along = product_of(z, by.directions)
        if z.device.type != "meta":  # skipped in a rehearsal: the first call takes seconds to import modules
            z.addmm_(along, by.directions.mT, alpha=-1)
        launch(
            round_contracted_kernel,
            -(-len(z) // tuning.FORM_ROWS),
            {
                "rest_ptr": z,
                "along_ptr": along,
                "lengths_ptr": lengths,
                "origin_ptr": by.origin,
                "values_ptr": out.values[here],
                "errors_ptr": out.errors[here],
                "n": len(z),
                "d": d,
                "kept": by.p - 1,
            },
            constants={"BEYOND": BEYOND, "ROWS": tuning.FORM_ROWS, "COLUMNS": tuning.FORM_COLUMNS},
            warps=tuning.FORM_WARPS,
        )
    return out


def _form_rows(rows: Any, form: DeviceForm, origin: Any, flags: Any, first: int) -> tuple[Any, Any]:
    """Return the form rows minus an origin, float64 (n, d), and their lengths, +inf if a row cannot be contracted."""
    import torch

    from tonari.exact.cuda.kernels.rows.write_form import write_form_kernel

    n, d = rows.shape
    out = torch.empty((n, d), dtype=torch.float64, device=rows.device)
    lengths = torch.empty(n, dtype=torch.float64, device=rows.device)
    launch(
        write_form_kernel,
        -(-n // tuning.FORM_ROWS),
        {
            "rows_ptr": rows,
            "centre_ptr": form.centre,
            "scale_ptr": form.scale,
            "origin_ptr": origin,
            "out_ptr": out,
            "length_ptr": lengths,
            "flags_ptr": flags,
            "n": n,
            "d": d,
            "stride": rows.stride(0),
            "first_row": first,
        },
        constants={
            "METRIC": get_metric(form.metric).before_root,
            "LIMIT": LARGEST,
            "STEP": math.gcd(d, rows.stride(0), 4),
            "ROWS": tuning.FORM_ROWS,
            "T": 8,
            "V": 4,
        },
        warps=tuning.FORM_WARPS,
    )
    return out, lengths


def principal(covariance: Any, count: int) -> Any:
    """Return orthonormal columns (d, count) that approximately span the principal directions, by subspace iteration."""
    import torch

    d = len(covariance)
    if covariance.device.type == "meta":  # a rehearsal; the steps below launch only torch's kernels
        return covariance.new_empty((d, count))
    random = torch.Generator(device=covariance.device).manual_seed(derived_seed(0, Purpose.DIRECTIONS))
    start = torch.randn((d, count), dtype=torch.float64, device=covariance.device, generator=random)
    # The matrix is scaled so that its largest element is 1; its powers then neither overflow nor vanish.
    covariance = covariance / covariance.abs().amax().clamp_min(torch.finfo(torch.float64).tiny)
    found = torch.linalg.qr(start).Q
    for _ in range(tuning.ITERATIONS):
        found = torch.linalg.qr(covariance @ found).Q
    return found


def with_directions(form: DeviceForm, directions: Any, origin: Any) -> Contraction:
    """Return the contraction to these directions; `stretch` covers their measured deviation from orthonormality."""
    import torch

    d, count = directions.shape
    if directions.device.type == "meta":
        return Contraction(form, directions.contiguous(), origin, origin.new_empty(1))
    identity = torch.eye(count, dtype=torch.float64, device=directions.device)
    apart = torch.linalg.matrix_norm(directions.mT @ directions - identity)
    # Each of the count^2 inner products of two columns has a rounding error of at most (d + 2) 2^-53 times the product
    # of their lengths.
    apart = apart * (1 + 2.0**-20) + (1 + apart) * count * (d + count + 16) * 2.0**-52
    return Contraction(form, directions.contiguous(), origin, (apart * (1 + apart))[None])
