"""Compaction on a GPU: what is at or below a row's threshold, by as many programs as keep the card reading."""

from __future__ import annotations

import math
from typing import Any

from tonari.cuda.launch import launch
from tonari.select.cuda.keys import FORMATS
from tonari.select.request import Request

STREAM_WARPS = 1  # warps that need not wait for each other, with little in hand: measured
THREAD_BYTES = 32  # that a thread streams at a time
PROGRAMS = 8192  # that compact, at least, where the rows allow it


def compact(
    request: Request,
    bits: Any,
    lengths: Any,
    key: Any,
    last: Any,
    left_bits: Any,
    left_ids: Any,
    counts: Any,
    nan_row: Any,
    first_row: int,
    *,
    exact: bool,
) -> None:
    """Append to each row's survivors what is at or below its threshold.

    Parameters
    ----------
    bits, lengths : tensors of shapes (rows, n) and (rows,)
        Rows of the request from `first_row` on.
    key, last : tensors of one pair per row
    left_bits, left_ids : tensors of shape (rows, capacity)
    counts : int32 tensor, 0 for every row
        Beyond the capacity survivors are only counted.
    nan_row : int32 tensor of one element, for the first row of the request that holds NaN
    exact : bool
        Otherwise a NaN of negative sign passes as well, and -0.0 where 0.0 does.
    """
    from tonari.select.cuda.kernels.compact import compact_kernel

    form = FORMATS[request.dtype]
    count, n = bits.shape
    tile = {"T": 32 * STREAM_WARPS, "A": THREAD_BYTES // 16, "V": 16 // bits.element_size()}
    step = math.prod(tile.values())
    parts = max(1, min(-(-PROGRAMS // count), n // (2 * step)))
    chunk = -(-n // (parts * step)) * step
    parts = -(-n // chunk)
    launch(
        compact_kernel,
        count * parts,
        {
            "values_ptr": bits,
            "lengths_ptr": lengths,
            "threshold_keys_ptr": key,
            "threshold_ids_ptr": last,
            "bits_ptr": left_bits,
            "ids_ptr": left_ids,
            "counts_ptr": counts,
            "nan_row_ptr": nan_row,
            "first_row": first_row,
            "stride": bits.stride(0),
            "n": n,
            "capacity": left_bits.shape[1],
            "parts": parts,
            "chunk": chunk,
        },
        constants={
            "HAS_LENGTHS": lengths is not None,
            "CHECK_NAN": request.check_nan and form.infinite > 0,
            "INFINITE": form.infinite,
            "LARGEST": request.largest,
            "WIDE": form.wide,
            "EXACT": exact,
            **tile,
        },
        warps=STREAM_WARPS,
    )
