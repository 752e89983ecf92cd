"""Truncated bitonic sort: the baseline of the papers on k-selection.

Sismanis, Pitsianis and Sun 2012, "Parallel Search of k-Nearest Neighbors with Synchronous Operations" (HPEC). A row is
cut into runs of K >= k values, each of which is sorted. Runs are then merged in pairs, and the smaller half of each
pair is kept. The work is n log²(K) / 2 exchanges for any values.

On a GPU, K is a power of two from 32 to 4096. For a larger k, torch's segmented sort sorts the whole row, because a
network for a row would have log²(n) / 2 steps, whereas a radix sort has four.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from tonari.cuda.launch import launch
from tonari.select import tuning
from tonari.select.cuda.keys import FORMATS, as_bits, constants_of, looks_for_nan
from tonari.select.cuda.survivors import (
    LARGEST_NETWORK,
    Survivors,
    answer_from_survivors,
    empty_answer,
    network_size,
    power_of_two,
    warps_for,
)
from tonari.select.request import Answer, Request


@dataclass(frozen=True, kw_only=True)
class Options:
    """The options record of ``method="bitonic"``, which has no options."""


def select_on_gpu(request: Request) -> Answer:
    """Answer a request by bitonic sorts, on the device that holds its values."""
    if request.k > LARGEST_NETWORK:
        return answer_by_sort(request)
    import torch

    from tonari.select.cuda.kernels.bitonic import bitonic_kernel, merge_runs_kernel

    form = FORMATS[request.dtype]
    bits = as_bits(request.values, request.dtype)
    rows, n = bits.shape
    answer = empty_answer(request)
    out_values = as_bits(answer.values, request.dtype)
    size = network_size(request.k)
    tile = max(size, min(tuning.BITONIC_TILE, power_of_two(n)))
    tiles = -(-n // tile)
    least = max(1, round(math.sqrt(tuning.BITONIC_MERGE_SHARE * tiles)))  # minimum number of tiles in a part
    parts = max(1, min(tuning.BITONIC_PROGRAMS // rows, tiles // least))
    chunk = -(-tiles // parts) * tile
    parts = -(-n // chunk)
    run_keys = run_ids = None
    if parts > 1:
        runs = (rows * parts, size)
        run_keys = torch.empty(runs, dtype=torch.int64 if form.wide else torch.int32, device=bits.device)
        run_ids = torch.empty(runs, dtype=torch.int32, device=bits.device)
    launch(
        bitonic_kernel,
        rows * parts,
        {
            "values_ptr": bits,
            "lengths_ptr": request.lengths,
            "out_values_ptr": out_values,
            "out_ids_ptr": answer.indices,
            "run_keys_ptr": run_keys,
            "run_ids_ptr": run_ids,
            "nan_row_ptr": answer.nan_row,
            "stride": bits.stride(0),
            "n": n,
            "k": request.k,
            "parts": parts,
            "chunk": chunk,
        },
        constants={
            **constants_of(request),
            "CHECK_NAN": looks_for_nan(request),
            "MISSING": form.missing(request.largest),
            "SPLIT": parts > 1,
            "TILE": tile,
            "K": size,
        },
        warps=warps_for(tile, form.wide),
    )
    if parts > 1:
        launch(
            merge_runs_kernel,
            rows,
            {
                "values_ptr": bits,
                "run_keys_ptr": run_keys,
                "run_ids_ptr": run_ids,
                "out_values_ptr": out_values,
                "out_ids_ptr": answer.indices,
                "stride": bits.stride(0),
                "k": request.k,
                "parts": parts,
            },
            constants={
                "INFINITE": form.infinite,
                "LARGEST": request.largest,
                "MISSING": form.missing(request.largest),
                "K": size,
            },
            warps=warps_for(size, form.wide),
        )
    return answer


def answer_by_sort(request: Request) -> Answer:
    """Answer a request by torch's sort of whole rows, for k close to n or too large for a sorting network."""
    import torch

    bits = as_bits(request.values, request.dtype)
    n = bits.shape[1]
    columns = torch.arange(n, dtype=torch.int32, device=bits.device)

    def narrow(survivors: Survivors) -> None:
        rows = survivors.rows
        survivors.bits.copy_(bits[rows])
        survivors.ids.copy_(columns.expand_as(survivors.ids))
        survivors.counts.copy_(torch.tensor(n) if request.lengths is None else request.lengths[rows])
        if survivors.nan_row is not None:
            real = columns < survivors.counts[:, None]
            has_nan = (real & (request.values[rows] != request.values[rows])).any(dim=1)
            numbers = torch.arange(rows.start, rows.stop, dtype=torch.int32, device=bits.device)
            first = torch.where(has_nan, numbers, 2**31 - 1).min()
            torch.minimum(survivors.nan_row, first, out=survivors.nan_row)

    return answer_from_survivors(request, n, narrow)
