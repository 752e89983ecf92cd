"""What passes between the border of k-selection and its methods: a checked request, an answer, counters."""

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
    """What a method did, filled by ``select_k(..., counters=...)``; None where the method has no such thing.

    Attributes
    ----------
    updates : int64 array
        Writes at each position of the queue, summed over the rows; position 0 is the head, which holds the largest.
    merges : int
        Merges of queue levels, one for each row that takes part (merge_queue).
    flushes : int
        Times that buffers were emptied: once for all the rows that do it together.
    examined : int
        Values compared with a queue's head or a threshold, or partitioned.
    lanes : int
        Rows that go together: the lanes of a vector register or of a warp.
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
    """A selection that has passed the border; nothing behind it checks again.

    Attributes
    ----------
    values : NumPy array or torch tensor of shape (rows, n)
        Last axis contiguous, rows at any distance. NumPy holds bfloat16 as int16 bits.
    dtype : str
        "float32", "float16", "bfloat16", "float64", "int32" or "uint8".
    k : int
    largest, sorted : bool
    lengths : int64 array on the values' device, or None
    options : the options record of the method
    counters : Counters or None
    check_nan : bool
        Whether the method has to tell of NaNs; they are ordered last either way.
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
    """What a GPU method gives back.

    Attributes
    ----------
    values, indices : tensors of shape (rows, k)
    nan_row : int32 tensor of one element, or None
        The first row that holds NaN, or 2**31 - 1; None when nobody asked.
    """

    values: Any
    indices: Any
    nan_row: Any = field(default=None)
