"""The records of k-selection: the checked request, the answer, and counters of operations."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt


class Selection(NamedTuple):
    """The k smallest (or largest) values of every row.

    Attributes
    ----------
    values : array of shape (rows, k), dtype of the input
    indices : int32 array of shape (rows, k)
        Columns of the input; -1 where a row has fewer than k values.
    """

    values: Any
    indices: Any


@dataclass
class Counters:
    """Counts of a method's operations, filled by ``select_k(..., counters=...)``; None for counts that it lacks.

    Attributes
    ----------
    updates : int64 array
        Writes at each position of the queue, summed over the rows; position 0 is the head, the largest entry.
    merges : int
        Merges of queue levels, counted once per row that takes part (merge_queue).
    flushes : int
        The number of times that buffers were emptied, counted once for all rows that empty theirs together.
    examined : int
        The number of values that were compared with a queue's head or a threshold, or partitioned.
    lanes : int
        Rows processed together: the lanes of a vector register or of a warp.
    compression_ratio : float
        matsumoto2015, equation 4: n over the largest number of values left in a row of the batch; mean over batches.
    threshold_ratio : float
        matsumoto2015, equation 3: k-th smallest value over the threshold; mean over rows.
    """

    updates: npt.NDArray[np.int64] | None = None
    merges: int | None = None
    flushes: int | None = None
    examined: int | None = None
    lanes: int | None = None
    compression_ratio: float | None = None
    threshold_ratio: float | None = None


@dataclass(frozen=True)
class Request:
    """A selection whose arguments have been checked; code that takes a Request does not check them again.

    Attributes
    ----------
    values : NumPy array or torch tensor of shape (rows, n)
        Contiguous along the last axis, with any stride between rows. A NumPy array has the bits of bfloat16 values as
        int16.
    dtype : str
        "float32", "float16", "bfloat16", "float64", "int32" or "uint8".
    lengths : int64 array on the values' device, or None
    options : the options record of the method
    check_nan : bool
        Whether the method must report NaN; in either case, NaNs come after all numbers.
    """

    values: Any
    dtype: str
    k: int
    options: Any
    largest: bool = False
    sorted: bool = True
    lengths: Any = None
    counters: Counters | None = None
    check_nan: bool = True


@dataclass(frozen=True)
class Answer:
    """The result of a method on a GPU.

    Attributes
    ----------
    values, indices : tensors of shape (rows, k)
    nan_row : int32 tensor of one element, or None
        The first row with NaN, or 2**31 - 1 if there is none; None if the request did not ask for it.
    """

    values: Any
    indices: Any
    nan_row: Any = field(default=None)
