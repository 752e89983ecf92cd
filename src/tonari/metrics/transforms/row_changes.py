"""The transformations that ``change.py`` uses: each checks rows, and returns transformed rows in float64."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from tonari import inputs
from tonari.core.process.callers import callers_level
from tonari.core.rows.slices import cut
from tonari.metrics import tuning
from tonari.metrics.definitions import Float64, unit_vectors
from tonari.metrics.transforms import maps
from tonari.metrics.transforms.trigonometry import LARGEST_ANGLE


class Prepare(Protocol):
    """The interface of a transformation: a function that checks and transforms rows."""

    def __call__(self, rows: Any, name: str, threads: int | None = None, /) -> Any:
        """Return the transformed rows in float64, an array or a tensor on CUDA, using up to `threads` CPU threads."""


@dataclass(frozen=True)
class Weighting:
    """A transformation that multiplies each column by a factor from its weight, and drops columns of weight 0."""

    weights: npt.NDArray[np.float64]
    factors: Callable[[Float64], Float64]

    def __call__(self, rows: Any, name: str, threads: int | None = None) -> Any:
        if rows.shape[1] != len(self.weights):
            raise ValueError(
                f"weights: has {len(self.weights)} numbers, but {name} have {rows.shape[1]} columns; give one for each"
            )
        kept = np.flatnonzero(self.weights)
        factors = self.factors(self.weights[kept])
        if isinstance(rows, np.ndarray):
            with np.errstate(over="ignore"):  # infinite values are left to the search, which refuses them
                return _in_blocks(lambda part: part[:, kept] * factors, rows, len(kept))
        wide = rows.double()
        at = kept.tolist()
        return wide[:, at].contiguous() * wide.new_tensor(factors)


@dataclass(frozen=True)
class Mapping:
    """A transformation that multiplies rows by a matrix, in host memory; `called` is the matrix's name in messages."""

    matrix: Float64
    called: str

    def __call__(self, rows: Any, name: str, threads: int | None = None) -> Any:
        d = len(self.matrix)
        if rows.shape[1] != d:
            raise ValueError(
                f"{self.called}: is for rows of {d} columns, but {name} have {rows.shape[1]}; pass a matrix with a row "
                "for each column"
            )
        return _on_host(lambda held: maps.product(held, self.matrix, threads), rows)


def _in_blocks(function: Callable[[Float64], Float64], rows: npt.NDArray[Any], width: int) -> Float64:
    """Apply a function to float64 copies of blocks of rows, so that only its result of `width` columns takes memory."""
    made = np.empty((len(rows), width))
    for part in cut(len(rows), max(1, tuning.WIDENED_ELEMENTS // rows.shape[1])):
        made[part] = function(np.asarray(inputs.as_floats(rows[part]), np.float64))
    return made


def _widened(rows: npt.NDArray[Any]) -> Float64:
    """Return rows in float64: themselves if they are, else a copy."""
    return rows if rows.dtype == np.float64 else _in_blocks(lambda part: part, rows, rows.shape[1])


def _on_host(make: Callable[[Float64], Float64], rows: Any) -> Any:
    """Apply a function to the rows in host memory, and return the result on the device of the rows."""
    if isinstance(rows, np.ndarray):
        return make(rows)
    return sys.modules["torch"].from_numpy(make(inputs.held(rows.cpu()))).to(rows.device)


def roots_of_rows(rows: Any, name: str, threads: int | None = None) -> Any:
    """Check that no element of rows is negative, and return the square roots of all elements in float64."""
    if not isinstance(rows, np.ndarray):
        if bool((rows < 0).any()):
            inputs.check_values(rows, name, first=0, nonnegative=True)
        return rows.double().sqrt()
    inputs.check_nonnegative(rows, name, threads)
    return _in_blocks(np.sqrt, rows, rows.shape[1])


def shares(rows: Any, name: str, threads: int | None = None) -> Any:
    """Check that no element is negative and that each row sums to one, up to rounding; return the rows in float64."""

    def check(held: npt.NDArray[Any]) -> Float64:
        inputs.check_nonnegative(held, name, threads)
        wide = _widened(held)
        sums = wide.sum(axis=1)
        bad = np.abs(sums - 1) > (held.shape[1] + 8) * _EPSILON.get(inputs.dtype_name(held.dtype), 0.0)
        if bad.any():
            row = int(bad.argmax())
            raise ValueError(
                f"{name}: row {row} sums to {sums[row]:.9g}, but metric='braycurtis' takes rows that each sum to one, "
                "since its ratio of two sums is then half of 'l1'; divide each row by its sum, "
                "x / x.sum(axis=1, keepdims=True), or use scipy.spatial.distance.cdist for rows of other sums"
            )
        return wide

    return _on_host(check, rows)


# Machine epsilons by dtype. float64 rows get that of float32, because they may have been converted from float32.
_EPSILON = {"float64": 2.0**-23, "float32": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7}


def unit_rows(rows: Any, name: str, threads: int | None = None) -> Any:
    """Check rows of latitude and longitude in radians, and return them as unit vectors of shape (n, 3)."""
    if rows.shape[1] != 2:
        raise ValueError(
            f"{name}: has {rows.shape[1]} columns, but metric='haversine' compares (latitude, longitude) in radians; "
            "pass an array of shape (n, 2)"
        )
    dtype = inputs.name_of_dtype(rows)
    if "float" in dtype and dtype != "float64":
        warnings.warn(
            f"{name}: angles in {dtype}, of which metric='haversine' returns float64 distances that are exact for the "
            "rounded angles only: float32 is off by up to 0.05 arcseconds in a coordinate; pass float64 angles",
            stacklevel=callers_level(),
        )
    held = rows if isinstance(rows, np.ndarray) else inputs.held(rows.cpu())
    # float32(pi / 2) is above pi / 2, and must be accepted
    most = float(np.float32(np.pi / 2)) if dtype == "float32" else np.pi / 2
    expected = f"-pi/2 to pi/2, for {name} of latitude, longitude", f"-{LARGEST_ANGLE:g} to {LARGEST_ANGLE:g}"
    made = np.empty((len(held), 3))
    for part in cut(len(made), tuning.CHANGED_ELEMENTS):
        latitude, longitude = np.ascontiguousarray(inputs.as_floats(held[part]).T, np.float64)
        _refuse(latitude, most, part.start, f"{name}: row", "latitude", expected[0])
        _refuse(longitude, LARGEST_ANGLE, part.start, f"{name}: row", "longitude", expected[1])
        made[part] = unit_vectors(latitude, longitude).T
    return made if isinstance(rows, np.ndarray) else rows.double().new_tensor(made)


@dataclass(frozen=True)
class Widening:
    """A transformation to float64 that refuses elements beyond `largest`, because sums of powers would overflow."""

    metric: str
    largest: float

    def __call__(self, rows: Any, name: str, threads: int | None = None) -> Any:
        wide = _widened(rows) if isinstance(rows, np.ndarray) else rows.double()
        if len(wide) and max(float(wide.max()), -float(wide.min())) > self.largest:
            beyond = abs(wide) > self.largest
            row, column = (int(at[0]) for at in np.nonzero(np.asarray(inputs.to_host(beyond))))
            raise ValueError(
                f"{name}: row {row} has a value whose power overflows float64 by metric={self.metric!r} "
                f"({float(wide[row, column])} in column {column}); scale the data to within {self.largest:g}"
            )
        return wide


def _refuse(values: Float64, most: float, first: int, row: str, what: str, expected: str) -> None:
    """Raise ValueError if an angle exceeds `most` in magnitude; the first of `values` is that of row `first`."""
    bad = np.abs(values) > most
    if bad.any():
        at = int(bad.argmax())
        raise ValueError(
            f"{row} {first + at} has the {what} {values[at]:g}, expected {expected} in radians; convert degrees by "
            "numpy.radians"
        )
