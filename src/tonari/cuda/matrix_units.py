"""Test that a device's matrix units add as precisely as the certificate of exact search assumes.

The assumption is (docs/exactness.md, "Sums on matrix units"): the error of adding a product of float16 values is at
most 2 units of 2^-23 of the sum of magnitudes, and subnormal elements are not replaced by zeros. The vendor does not
document this, so each device is tested once, at first use. The test computes sums that lose as many bits as possible,
and compares them with the same sums in float64.
"""

from __future__ import annotations

import functools
import os
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tonari.core.errors import Unsupported
from tonari.core.rows.draws import Purpose, generator
from tonari.cuda.launch import launch

ROWS, WIDTH = 64, 128  # the test has ROWS queries and ROWS points, of WIDTH columns
UNIT = 2.0**-24  # unit roundoff of float32

# Numbers of nonzero columns in short rows: one product is 1, the others are just below a value of _SMALL.
_SHORT = (16, 32)
_SMALL = tuple(2.0**-bits for bits in range(19, 25))
_FACTOR = 2.0**-12  # the element of the query in a small product

# If the first environment variable is set, cuBLAS computes large float64 products with the number of bits in the
# second.
_EMULATED, _EMULATED_BITS = "CUBLAS_EMULATE_DOUBLE_PRECISION", "CUBLAS_FIXEDPOINT_EMULATION_MANTISSA_BIT_COUNT"
_LEAST_EMULATED_BITS = 53


class Probe(NamedTuple):
    """The operands of the test, whose products are summed from 0 and from the start values in `low`.

    Attributes
    ----------
    queries, points : float16 (ROWS, WIDTH)
    low : float32 (ROWS,)
        For each point, the value that its sums start from.
    """

    queries: npt.NDArray[np.float16]
    points: npt.NDArray[np.float16]
    low: npt.NDArray[np.float32]


def check_matrix_units(device: Any) -> None:
    """Raise Unsupported if a CUDA device's matrix units add less precisely than exact search assumes.

    Also raise Unsupported if environment variables let cuBLAS compute float64 products with fewer bits than float64
    has. Each device is tested once. A rehearsal only records the kernel of the test.
    """
    if device.type in ("meta", "cuda"):
        _check_float64()
    if device.type == "meta":
        _launched(make_probe(), device)
    if device.type == "cuda" and not _adds_as_assumed(device):
        import torch

        raise Unsupported(
            f"{device} ({torch.cuda.get_device_name(device)}): its matrix units add float16 products less precisely "
            'than exact search assumes (docs/exactness.md, "Sums on matrix units"); search with device="cpu", or '
            'with method="kdtree"'
        )


def _check_float64() -> None:
    bits = os.environ.get(_EMULATED_BITS, "").strip()
    if os.environ.get(_EMULATED, "").strip() in ("", "0") or not bits.isdecimal():
        return
    if int(bits) < _LEAST_EMULATED_BITS:
        raise Unsupported(
            f"{_EMULATED_BITS}={bits} with {_EMULATED} set: cuBLAS would compute float64 products with {bits} bits, "
            f"exact search on CUDA needs at least {_LEAST_EMULATED_BITS}; unset {_EMULATED}"
        )


@functools.lru_cache(maxsize=64)
def _adds_as_assumed(device: Any) -> bool:
    probe = make_probe()
    return within_bounds(probe, *products(probe, device))


def make_probe() -> Probe:
    """Make the operands of the test, whose sums lose as many bits as possible.

    There are four kinds of rows: with terms below the last bit of the sum, with cancellation, with subnormal elements,
    and with magnitudes spread over the whole range. The last rows have few nonzero columns: one of their products is 1,
    and all others are tiny. Matrix units with too few bits lose all tiny products, whose sum exceeds the error that is
    allowed for so few columns.
    """
    rng = generator(0, Purpose.PROBE)
    queries, points = rng.uniform(1, 2, (2, ROWS, WIDTH)) * 2.0**-6
    points *= rng.choice([-1.0, 1.0], (ROWS, WIDTH))
    points[:, 0], queries[:, 0] = 2.0**6, 2.0**5  # a large term: sums nearly lose all other terms
    points[::4, -1], queries[::4, -1] = -(2.0**6), 2.0**5  # a term that cancels the large one
    points[1::4] = rng.uniform(-1, 1, (ROWS // 4, WIDTH)) * 2.0**-14  # subnormal elements
    spread = 2.0 ** rng.integers(-14, 8, (2, ROWS // 4, WIDTH))
    queries[2::4] *= spread[0]
    points[2::4] *= spread[1]
    order = rng.permutation(WIDTH)
    queries, points = (part[:, order].astype(np.float16, order="C") for part in (queries, points))
    at = ROWS - 2 * len(_SMALL) * len(_SHORT)  # from here on: a row for every small value, width and sign
    for query, width in enumerate(_SHORT, ROWS - len(_SHORT)):
        queries[query] = [1.0, *[_FACTOR] * (width - 1), *[0.0] * (WIDTH - width)]
        for small in _SMALL:
            for sign in (1.0, -1.0):
                value = sign * small * (1 - 2.0**-9) / _FACTOR
                points[at] = [1.0, *[value] * (width - 1), *[0.0] * (WIDTH - width)]
                at += 1
    return Probe(queries, points, rng.choice([0.0, 2.0**-9, 3.0, -(2.0**11), 2.0**20], ROWS).astype(np.float32))


def products(probe: Probe, device: Any) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    """Return the products of all queries and points on a device, once summed from 0 and once summed from `low`.

    Both have the shape (ROWS, ROWS).
    """
    plain, started = _launched(probe, device).cpu().numpy()
    return plain, started


def _launched(probe: Probe, device: Any) -> Any:
    """Launch the kernel, and return both results as a float32 tensor (2, ROWS, ROWS); the host does not wait."""
    import torch

    from tonari.cuda.kernels.matrix_units import products_kernel

    queries, points, low = (torch.from_numpy(part).to(device) for part in probe)
    out = torch.full((2, ROWS, ROWS), float("nan"), dtype=torch.float32, device=device)
    launch(
        products_kernel,
        1,
        {"queries_ptr": queries, "points_ptr": points, "low_ptr": low, "out_ptr": out},
        constants={"ROWS": ROWS, "WIDTH": WIDTH},
        warps=4,
    )
    return out


def within_bounds(probe: Probe, plain: npt.NDArray[np.float32], started: npt.NDArray[np.float32]) -> bool:
    """Return whether the errors of the sums are at most as large as exact search assumes."""
    queries, points, low = (part.astype(np.float64) for part in probe)
    truth, magnitudes = queries @ points.T, np.abs(queries) @ np.abs(points).T  # exact up to a relative error of 2^-46
    columns = (queries != 0).astype(np.float64) @ (points != 0).T  # products with 0 cause no error
    share = 4 * columns * UNIT
    allowed = share / (1 - share)
    return bool(
        np.all(np.abs(plain - truth) <= allowed * magnitudes)
        and np.all(np.abs(started - (truth + low)) <= allowed * (magnitudes + np.abs(low)))
    )
