"""Compaction on a GPU: gather the values at or below each row's threshold, with enough programs to saturate memory."""

from __future__ import annotations

import math
from typing import Any

from tonari.cuda.launch import launch
from tonari.select import tuning
from tonari.select.cuda.keys import FORMATS
from tonari.select.request import Request


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
    """Append the values at or below each row's threshold to its survivors.

    Parameters
    ----------
    bits, lengths : tensors of shapes (rows, n) and (rows,)
        Rows of the request, beginning at `first_row`.
    key, last : tensors of shape (rows,)
        The threshold of each row.
    left_bits, left_ids : tensors of shape (rows, capacity)
        Output: the survivors.
    counts : int32 tensor of shape (rows,), all 0
        Output. Survivors beyond the capacity are counted, but not stored.
    nan_row : int32 tensor of one element
        Output: the first row of the request that has NaN.
    exact : bool
        If False, comparisons are cheaper, but a NaN with the sign bit set also passes, and -0.0 wherever 0.0 does.
    """
    from tonari.select.cuda.kernels.compact import compact_kernel

    form = FORMATS[request.dtype]
    count, n = bits.shape
    tile = {"T": 32 * tuning.COMPACT_WARPS, "A": tuning.COMPACT_THREAD_BYTES // 16, "V": 16 // bits.element_size()}
    step = math.prod(tile.values())
    parts = max(1, min(-(-tuning.COMPACT_PROGRAMS // count), n // (2 * step)))
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
        warps=tuning.COMPACT_WARPS,
    )
