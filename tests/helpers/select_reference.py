"""The reference of k-selection: NumPy's stable sort of every row, and slow models that count operations.

    ascending    order of values, NaN last, -0.0 equal to 0.0, ties by column: numpy.argsort(row, kind="stable")
    largest      the same order of -values, or of ~values for integers

Not fast.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tests.helpers.select_models import MODELS, run_model
from tonari import inputs
from tonari.select.registry import make_options
from tonari.select.request import Counters, Selection

_Array = npt.NDArray[Any]


def select_k_reference(
    values: Any,
    k: int,
    *,
    method: str = "auto",
    largest: bool = False,
    sorted: bool = True,
    lengths: Any = None,
    nan: str = "refuse",
    counters: Counters | None = None,
    threads: int | None = None,
    lanes: int | None = None,
    **options: Any,
) -> Selection:
    """Find the k smallest values of every row; parameters and result are those of :func:`tonari.select_k`.

    Parameters
    ----------
    values : array of shape (rows, n)
        A NumPy array, or a torch tensor on the CPU.
    method : str
        "auto" sorts; insertion, heap, merge_queue and hierarchical run their models, which fill ``counters``.
    sorted, threads
        Accepted, but without effect.
    lanes : int, optional
        Rows that a model processes together. Default: as on the CPU, 8 for float64, else 16; kernels on a GPU have 32.
    """
    matrix, dtype = inputs.as_values(values, "values")
    if not isinstance(matrix, np.ndarray):
        raise ValueError(f"values are on {matrix.device}, expected host memory; use .cpu()")
    rows, n = matrix.shape
    k = inputs.check_k(k, n, without_self=False, noun="column")
    given = inputs.as_lengths(lengths, (rows, n), "lengths")
    counts = np.full(rows, n) if given is None else given
    numbers = (matrix.astype(np.int32) << 16).view(np.float32) if dtype == "bfloat16" else matrix
    if numbers.dtype.kind == "f" and nan == "refuse":
        bad = (np.isnan(numbers) & (np.arange(n) < counts[:, None])).any(axis=1)
        if bad.any():
            raise ValueError(f"values: row {int(bad.argmax())} has NaN")
    ordered: _Array = numbers
    if largest:
        ordered = np.negative(numbers) if numbers.dtype.kind == "f" else np.invert(numbers)

    indices = np.full((rows, k), -1, np.int32)
    if method == "auto":
        for row, count in enumerate(counts):
            best = np.argsort(ordered[row, :count], kind="stable")[:k]
            indices[row, : len(best)] = best
    elif method in MODELS:
        record = make_options(method, options, "cpu")
        together = (8 if dtype == "float64" else 16) if lanes is None else lanes
        run_model(method, ordered, counts, record, together, indices, Counters() if counters is None else counters)
    else:
        raise ValueError(f"there is no model of method {method!r}; expected auto, {', '.join(MODELS)}")

    best = np.full((rows, k), _missing(dtype, matrix.dtype, largest), matrix.dtype)
    there = indices >= 0
    best[there] = np.take_along_axis(matrix, np.maximum(indices, 0), axis=1)[there]
    kind = inputs.kind_of(values)
    found = Selection(inputs.like(kind, best), inputs.like(kind, indices))
    if dtype == "bfloat16":
        found = found._replace(values=found.values.view(values.dtype))
    return found


def _missing(dtype: str, held: np.dtype[Any], largest: bool) -> Any:
    """Return the value that represents a missing entry."""
    if dtype == "bfloat16":
        return np.array(0xFF80 if largest else 0x7F80, np.uint16).view(np.int16)
    if held.kind == "f":
        return -np.inf if largest else np.inf
    return np.iinfo(held).min if largest else np.iinfo(held).max
