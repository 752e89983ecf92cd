"""Radix selection: find the k-th smallest key digit by digit, beginning with the most significant one.

The method is that of Alabi, Blanchard, Gordon and Steinbach 2012, "Fast k-selection algorithms for graphics processing
units", with the early stop of AIR Top-k (Zhang et al., SC 2023). A row is read once per digit, and once more to collect
the answer. The number of reads does not depend on k, so the time does not jump at any k. This method also answers the
rows on which a sampled threshold fails. If one program per row would not keep the GPU busy, several programs share a
row.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from tonari.cuda.launch import launch
from tonari.select import tuning
from tonari.select.cuda.bitonic import answer_by_sort
from tonari.select.cuda.compaction import compact
from tonari.select.cuda.keys import FORMATS, as_bits, constants_of, looks_for_nan
from tonari.select.cuda.survivors import (
    LARGEST_NETWORK,
    LARGEST_TILE,
    Survivors,
    answer_from_survivors,
    answer_in_place,
    part_of,
    power_of_two,
)
from tonari.select.request import Answer, Request


@dataclass(frozen=True, kw_only=True)
class Options:
    """Options of ``method="radix"``.

    Attributes
    ----------
    bits : int from 1 to 11
        Width of a digit. A digit needs 2**bits counters, and a row is read ceil(32 / bits) times, ceil(64 / bits) times
        for float64.
    """

    bits: int = 8

    def __post_init__(self) -> None:
        if not 1 <= self.bits <= 11:
            raise ValueError(f"bits={self.bits}: expected from 1 to 11 bits per digit")


def with_defaults(request: Request) -> Request:
    """Return a request with the default options of radix selection, for a method that falls back to it."""
    return replace(request, options=Options())


def select_on_gpu(request: Request) -> Answer:
    """Answer a request by radix selection, on the device that holds its values."""
    n, k = request.values.shape[1], request.k

    def narrow(survivors: Survivors) -> None:
        most = n // (tuning.RADIX_PART_TILES * tuning.RADIX_TILE)
        parts = min(-(-tuning.RADIX_PROGRAMS // len(survivors.counts)), most)
        if parts > 1 and n >= tuning.RADIX_SHARED_TILES * tuning.RADIX_TILE:
            _narrow_together(request, survivors, parts)
        else:
            _narrow_alone(request, survivors)

    if not request.sorted:
        return answer_in_place(request, narrow)
    if k > LARGEST_NETWORK and 4 * k > 3 * n:  # most values are selected, so sorting all values is faster
        return answer_by_sort(request)
    return answer_from_survivors(request, power_of_two(k) if k <= LARGEST_TILE else k, narrow)


def _constants(request: Request) -> dict[str, Any]:
    """Return the constants that all kernels of radix selection share."""
    return {**constants_of(request), "BITS": request.options.bits, "TILE": tuning.RADIX_TILE}


def _narrow_alone(request: Request, survivors: Survivors) -> None:
    """Write the k smallest pairs of each row to its survivors, with one program per row."""
    from tonari.select.cuda.kernels.radix import radix_kernel

    rows = survivors.rows
    bits = part_of(as_bits(request.values, request.dtype), rows)
    launch(
        radix_kernel,
        len(bits),
        {
            "values_ptr": bits,
            "lengths_ptr": part_of(request.lengths, rows),
            "bits_ptr": survivors.bits,
            "ids_ptr": survivors.ids,
            "counts_ptr": survivors.counts,
            "nan_row_ptr": survivors.nan_row,
            "first_row": rows.start,
            "stride": bits.stride(0),
            "n": bits.shape[1],
            "k": request.k,
            "capacity": survivors.bits.shape[1],
        },
        constants={"CHECK_NAN": looks_for_nan(request), **_constants(request)},
        warps=tuning.RADIX_WARPS,
    )


def _narrow_together(request: Request, survivors: Survivors, parts: int) -> None:
    """Write the k smallest pairs of each row to its survivors, with about `parts` programs that share a row.

    There is one launch per digit. Each launch derives the state of the search (kernels/radix.py) from the histograms of
    the previous launch. In memory, there are histograms [digit][row][2**bits], states [digit][row], and counts
    [row][part] of the values equal to the k-th.
    """
    import torch

    from tonari.select.cuda.kernels.radix_parts import digit_kernel, equals_kernel, settle_kernel

    rows = survivors.rows
    bits = part_of(as_bits(request.values, request.dtype), rows)
    lengths = part_of(request.lengths, rows)
    count, n = bits.shape
    wide = FORMATS[request.dtype].wide
    digits = -(-(64 if wide else 32) // request.options.bits)
    chunk = -(-n // (parts * tuning.RADIX_TILE)) * tuning.RADIX_TILE
    parts = -(-n // chunk)
    key_dtype = torch.int64 if wide else torch.int32
    whole = {"dtype": torch.int32, "device": bits.device}
    equals = torch.empty((count, parts), **whole)
    key, last = torch.empty(count, dtype=key_dtype, device=bits.device), torch.empty(count, **whole)
    common = {
        "values_ptr": bits,
        "lengths_ptr": lengths,
        "prefixes_ptr": torch.empty((digits, count), dtype=key_dtype, device=bits.device),
        "shares_ptr": torch.empty((digits, count, 2), **whole),
        "histograms_ptr": torch.zeros((digits, count, 1 << request.options.bits), **whole),
        "stride": bits.stride(0),
        "n": n,
        "k": request.k,
        "rows": count,
        "parts": parts,
        "chunk": chunk,
    }
    constants = _constants(request)
    for digit in range(digits):
        launch(digit_kernel, count * parts, {**common, "digit": digit}, constants=constants, warps=tuning.RADIX_WARPS)
    launch(
        equals_kernel,
        count * parts,
        {**common, "equals_ptr": equals, "digits": digits},
        constants=constants,
        warps=tuning.RADIX_WARPS,
    )
    launch(
        settle_kernel,
        count,
        {
            **common,
            "equals_ptr": equals,
            "keys_ptr": key,
            "ids_ptr": last,
            "counts_ptr": survivors.counts,
            "digits": digits,
        },
        constants=constants | {"PARTS": power_of_two(parts)},
        warps=tuning.RADIX_WARPS,
    )
    compact(request, bits, lengths, (key, last), survivors, exact=True)
