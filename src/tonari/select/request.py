"""The records of k-selection: the checked request, its result, and the counters of operations."""

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
    """Counts of a method's operations, filled by ``select_k(..., counters=...)``; None for counts that do not apply.

    Attributes
    ----------
    updates : int64 array
        Writes at each position of the queue, summed over the rows; position 0 is the head, the largest entry.
    merges : int
        The number of merges of queue levels, counted once for each row that takes part (merge_queue).
    flushes : int
        The number of times that buffers were emptied; rows that empty their buffers together count once.
    examined : int
        The number of values that were compared with a queue's head or with a threshold, or were partitioned by a pivot.
    lanes : int
        The number of rows that are processed together: the lanes of a vector register or of a warp.
    compression_ratio : float
        matsumoto2015, equation 4: n divided by the largest number of survivors in a row of a batch; mean over batches.
    threshold_ratio : float
        matsumoto2015, equation 3: the k-th smallest value divided by the threshold; mean over rows.
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
    lengths : int64 array of shape (rows,) on the values' device, or None
        The number of values of each row that are considered; None for all n.
    options : the options record of the method
    check_nan : bool
        Whether the method must report the first row that contains NaN. NaN is ordered after all numbers in either case.
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
    """The result of a method on a GPU: the selected values, and a NaN report that the host has not read yet.

    Attributes
    ----------
    values, indices : tensors of shape (rows, k)
    nan_row : int32 tensor of one element, or None
        The first row that contains NaN, 2**31 - 1 if no row does; None if the request did not ask for it.
    """

    values: Any
    indices: Any
    nan_row: Any = field(default=None)
