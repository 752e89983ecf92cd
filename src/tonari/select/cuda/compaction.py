"""Compaction on a GPU: collect the values at or below each row's threshold, in one read at full memory bandwidth."""

from __future__ import annotations

import math
from typing import Any

from tonari.cuda.launch import launch
from tonari.select import tuning
from tonari.select.cuda.keys import constants_of, looks_for_nan
from tonari.select.cuda.survivors import Survivors
from tonari.select.request import Request


def compact(
    request: Request,
    bits: Any,
    lengths: Any,
    threshold: tuple[Any, Any],
    survivors: Survivors,
    *,
    exact: bool,
) -> None:
    """Read the rows once, and append the values at or below each row's threshold to the survivors of the row.

    Parameters
    ----------
    bits, lengths : tensors of shapes (rows, n) and (rows,)
        The bits of the values, and the lengths of the rows; None for rows of n values.
    threshold : two tensors of shape (rows,)
        The threshold of each row: a key, and the last column in which a value with exactly this key is a survivor.
    survivors : Survivors
        Output. Its counts must be 0 at first; survivors beyond the capacity are counted, but not stored.
    exact : bool
        Whether values are compared with the threshold exactly. The other comparison is cheaper, but additional values
        survive: NaN with the sign bit set, and -0.0 if 0.0 survives.
    """
    from tonari.select.cuda.kernels.compact import compact_kernel

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
            "threshold_keys_ptr": threshold[0],
            "threshold_ids_ptr": threshold[1],
            "bits_ptr": survivors.bits,
            "ids_ptr": survivors.ids,
            "counts_ptr": survivors.counts,
            "nan_row_ptr": survivors.nan_row,
            "first_row": survivors.rows.start,
            "stride": bits.stride(0),
            "n": n,
            "capacity": survivors.bits.shape[1],
            "parts": parts,
            "chunk": chunk,
        },
        constants={
            **constants_of(request),
            "CHECK_NAN": looks_for_nan(request),
            "EXACT": exact,
            **tile,
        },
        warps=tuning.COMPACT_WARPS,
    )
