"""The plan of a search by the caller's own distances: how many queries and points a block has."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tonari.core.errors import BudgetExceeded
from tonari.core.results.neighbors import index_dtype
from tonari.user_metrics import tuning
from tonari.user_metrics.values import Values

_COPIES = 6  # memory of a block, including copies and masks, as a multiple of the bytes of its distances


@dataclass(frozen=True)
class GivenPlan:
    """The plan of a search by the caller's own distances.

    Attributes
    ----------
    rows : int
        The number of queries in a block, which is compared with all points.
    columns : int
        The number of points in a call of a function, or in a read from a matrix.
    working_bytes : int
        Memory of a block.
    output_bytes : int
        Memory of the neighbour lists; 0 for a search within a radius.
    """

    rows: int
    columns: int
    working_bytes: int
    output_bytes: int


def plan_given(values: Values, k: int, memory: int | None) -> GivenPlan:
    """Plan a search for the k nearest points by the caller's own distances; k = 0 means a search within a radius.

    Raises
    ------
    BudgetExceeded
        `memory` is too small for the lists and the distances of one query.

    Examples
    --------
    >>> from tonari.user_metrics.values import MatrixValues
    >>> plan_given(MatrixValues(np.zeros((1000, 100_000), np.float32)), 10, None).rows
    20
    """
    n, size = max(1, values.n), np.dtype(values.dtype).itemsize
    row = _COPIES * n * size
    output = values.m * k * (size + index_dtype(n).itemsize)
    rows = max(1, min(tuning.BLOCK_ROWS, tuning.BLOCK_VALUES // n))
    if memory is not None:
        if output + row > memory:
            raise BudgetExceeded(
                f"a memory budget of {memory} bytes cannot hold the lists and the {n} distances of one query: allow at "
                f"least {output + row}",
                least=output + row,
            )
        rows = min(rows, (memory - output) // row)
    columns = max(1, min(n, tuning.FUNCTION_NUMBERS // values.width))
    return GivenPlan(rows, columns, rows * row, output)
