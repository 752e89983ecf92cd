"""Sampled thresholds: Matsumoto and Yiu 2015, "Accelerating Exact Similarity Search on CPU-GPU Systems" (TH-heap).

A sample of n_S values of a row gives a threshold that at least k values of the row do not exceed. The row is streamed
once, and only the survivors, which are the values at or below the threshold, are kept (section V-A). Their number is
about k n / n_S. A partial sort then finds the k smallest survivors (V-C: a min-max heap of fixed size). The paper
samples on the GPU and sorts on the CPU; here the device that has the values also sorts.

On a GPU the paper's threshold, the k-th smallest of 8k samples, would keep n / 8 values, a significant cost in traffic
and sorting on a modern GPU. Here the rank of the threshold in the sample is chosen such that k is DEVIATIONS standard
deviations below the expected number of survivors, and `capacity` as many above it:

    rank - z sqrt(rank) >= k n_S / n,      capacity = (most + z sqrt(most)) n / n_S        z = DEVIATIONS

The search for a threshold is shorter if its rank is not fixed. A value is therefore accepted as the threshold if `rank`
to `most` samples are at or below it. About one row in 10^5 has fewer than k or more than `capacity` survivors. The same
kernel then answers this row by radix selection. The result is thus exact for every input, and the device does not wait
for the host.

For few long rows, parts.py is used instead, without a sample.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from tonari.core.process.caches import cached
from tonari.cuda.launch import launch
from tonari.select import tuning
from tonari.select.cuda import parts, radix
from tonari.select.cuda.compaction import compact
from tonari.select.cuda.keys import FORMATS, as_bits, constants_of, looks_for_nan
from tonari.select.cuda.survivors import (
    LARGEST_NETWORK,
    LARGEST_TILE,
    empty_answer,
    network_size,
    new_survivors,
    part_of,
    power_of_two,
    row_blocks,
    tile_of,
    warps_for,
)
from tonari.select.request import Answer, Request


@dataclass(frozen=True, kw_only=True)
class Options:
    """Options of ``method="threshold"``.

    Attributes
    ----------
    samples : int, optional
        n_S, the size of the sample. Default on the CPU: 8k with finish="heap", as in the paper; with "halving" at least
        512 and at most a 16th of the row. Default on a GPU: chosen by the rule in the module docstring.
    batch : int, optional
        CPU only: the number of rows that are compacted into buffers of the same size (the paper's size_qbatch). Default
        16.
    finish : "heap" or "halving", optional
        CPU only: how to find the k smallest survivors: with the paper's heap, or by bisection. Default "halving".
    """

    samples: int | None = None
    batch: int | None = None
    finish: str | None = None

    def __post_init__(self) -> None:
        if self.samples is not None and self.samples < 1:
            raise ValueError(f"samples={self.samples}: expected at least 1")
        if self.batch is not None and self.batch < 1:
            raise ValueError(f"batch={self.batch}: expected at least 1 row")
        if self.finish not in (None, "heap", "halving"):
            raise ValueError(f'finish={self.finish!r}: expected "heap" or "halving"')


@dataclass(frozen=True)
class Shape:
    """The size of a row's sample, the rank of the threshold in it, and the capacity for survivors."""

    samples: int  # sampled values per program
    parts: int  # programs that sample one row
    rank: int
    most: int
    capacity: int  # slots for the survivors of a row, a power of two


def shape_for_sample(n: int, k: int, samples: int) -> Shape | None:
    """Compute rank and capacity for a sample of this size, a power of two, by the rule in the module docstring.

    Returns None if half of a row or more could survive, or if the samples up to the threshold, or the survivors, do not
    fit into a tile.
    """
    expected = k * samples / n
    root = (tuning.DEVIATIONS + math.sqrt(tuning.DEVIATIONS**2 + 4 * expected)) / 2
    rank = math.ceil(root * root)
    parts = max(1, samples // tuning.LARGEST_SAMPLE)
    most = rank + rank // 5 if parts == 1 else rank
    capacity = power_of_two(max(k, math.ceil((most + tuning.DEVIATIONS * math.sqrt(most) + 1) * n / samples)))
    if 2 * most > samples // parts or rank * parts > LARGEST_TILE or capacity > min(n // 2, LARGEST_TILE):
        return None
    return Shape(samples // parts, parts, rank, most, capacity)


@cached(maxsize=1024)
def shape_for(rows: int, n: int, k: int) -> Shape | None:
    """Choose the size of the sample; None if half of a row or more could survive with every size.

    The size with the least expected cost is chosen. Costs are measured in bytes of memory traffic that take the same
    time, fitted to timings: 20 per sample (to load it and to find the rank), 16 per survivor (written and read), and 12
    per slot for survivors (the last step scans all slots in registers).
    """
    best: tuple[float, Shape] | None = None
    for bits in range(9, 21):
        samples = 1 << bits
        shape = shape_for_sample(n, k, samples)
        if shape is None or 8 * samples > n:
            continue
        if bits > 17 and best is not None:  # samples this large are used only if no smaller size works
            break
        busy = min(shape.parts, max(1, 128 // rows))
        cost = 20 * samples / busy + 16 * shape.most * n / samples + 12 * shape.capacity
        if best is None or cost < best[0]:
            best = cost, shape
    return None if best is None else best[1]


def select_on_gpu(request: Request) -> Answer:
    """Answer a request by a sampled threshold, on the device that holds its values."""
    for name in ("batch", "finish"):
        if getattr(request.options, name) is not None:
            raise ValueError(
                f"{name}={getattr(request.options, name)!r}: applies only on the CPU, got values on a GPU; leave it out"
            )
    rows, n = request.values.shape
    samples = request.options.samples
    if samples is None and request.counters is None and parts.suits(rows, n):
        in_parts = parts.shape_for(n, request.k, FORMATS[request.dtype].wide)
        if in_parts is not None:
            return parts.select_in_parts(request, in_parts)
    if n <= tuning.LARGEST_RESIDENT and samples is None:
        return _select_resident(request)
    shape = shape_for(rows, n, request.k) if samples is None else shape_for_sample(n, request.k, power_of_two(samples))
    # The rank is chosen for rows of full length. For a shorter row it can be too low, and the row falls back to radix
    # selection, which costs most if rows are few.
    ragged = request.lengths is not None and rows <= tuning.FEW_ROWS and n >= tuning.LONG_ROW
    if shape is None or ragged or request.k > LARGEST_NETWORK:  # radix selection needs no sample, and supports every k
        return radix.select_on_gpu(radix.with_defaults(request))
    return _select_streamed(request, shape)


def _select_streamed(request: Request, shape: Shape) -> Answer:
    """Sample, compact and answer in separate kernels: the compaction, which reads all values, needs few registers."""
    from tonari.select.cuda.kernels.threshold import answer_kernel

    form = FORMATS[request.dtype]
    answer = empty_answer(request)
    all_bits, out_bits = as_bits(request.values, request.dtype), as_bits(answer.values, request.dtype)
    size = network_size(request.k)
    warps = warps_for(max(shape.capacity, size), form.wide)
    exact = len(request.values) <= tuning.FEW_ROWS
    tally = _Tally(request)
    for rows in row_blocks(request, shape.capacity):
        bits = part_of(all_bits, rows)
        count, n = bits.shape
        lengths = part_of(request.lengths, rows)
        survivors = new_survivors(rows, bits, shape.capacity, answer.nan_row)
        threshold = _thresholds(request, shape, bits, lengths, survivors.counts)
        compact(request, bits, lengths, threshold, survivors, exact=exact)
        tally.add(survivors.counts, threshold[1])
        launch(
            answer_kernel,
            count,
            {
                "values_ptr": bits,
                "lengths_ptr": lengths,
                "bits_ptr": survivors.bits,
                "ids_ptr": survivors.ids,
                "counts_ptr": survivors.counts,
                "out_values_ptr": part_of(out_bits, rows),
                "out_ids_ptr": part_of(answer.indices, rows),
                "stride": bits.stride(0),
                "n": n,
                "k": request.k,
                "capacity": shape.capacity,
            },
            constants={
                **constants_of(request),
                "MISSING": form.missing(request.largest),
                "SORTED": request.sorted,
                **tile_of(shape.capacity, warps),
                "SIZE": size,
            },
            warps=warps,  # no register limit: with 80, ptxas 12.8 compiled a kernel that lost some pairs
        )
    tally.fill(answer)
    return answer


def _thresholds(request: Request, shape: Shape, bits: Any, lengths: Any, counts: Any) -> tuple[Any, Any]:
    """Return the keys and the indices of the rows' thresholds, found by sampling; set the counts of survivors to 0."""
    import torch

    from tonari.select.cuda.kernels.threshold import merge_samples_kernel, sample_kernel

    wide = FORMATS[request.dtype].wide
    count, n = bits.shape
    single = shape.parts == 1
    size = 1 if single else shape.parts * shape.rank
    key_dtype = torch.int64 if wide else torch.int32
    keys = torch.empty((count, size), dtype=key_dtype, device=bits.device)
    ids = torch.empty((count, size), dtype=torch.int32, device=bits.device)
    warps = tuning.SAMPLE_WARPS if single else 2 * tuning.SAMPLE_WARPS
    few = not single and len(request.values) <= tuning.FEW_ROWS
    run = 1 if few else min(tuning.SAMPLE_RUN, shape.samples // (32 * warps))
    launch(
        sample_kernel,
        count * shape.parts,
        {
            "values_ptr": bits,
            "lengths_ptr": lengths,
            "keys_ptr": keys,
            "ids_ptr": ids,
            "counts_ptr": counts,
            "stride": bits.stride(0),
            "n": n,
            "capacity": shape.capacity,
            "parts": shape.parts,
            "rank": shape.rank,
            "most": shape.most,
        },
        constants={
            **constants_of(request),
            "SINGLE": single,
            "T": 32 * warps,
            "A": shape.samples // (32 * warps * run),
            "RUN": run,
        },
        warps=warps,
    )
    if single:
        return keys, ids
    key = torch.empty(count, dtype=key_dtype, device=bits.device)
    last = torch.empty(count, dtype=torch.int32, device=bits.device)
    warps = warps_for(power_of_two(size), wide)
    launch(
        merge_samples_kernel,
        count,
        {
            "sample_keys_ptr": keys,
            "sample_ids_ptr": ids,
            "lengths_ptr": lengths,
            "keys_ptr": key,
            "ids_ptr": last,
            "counts_ptr": counts,
            "n": n,
            "capacity": shape.capacity,
            "count": size,
            "rank": shape.rank,
        },
        constants={"HAS_LENGTHS": lengths is not None, "WIDE": wide, **tile_of(size, warps)},
        warps=warps,
    )
    return key, last


def _select_resident(request: Request) -> Answer:
    """Answer a request whose rows fit in registers: the whole row is the sample, and the threshold is exact."""
    import torch

    from tonari.select.cuda.kernels.threshold import resident_kernel

    form = FORMATS[request.dtype]
    answer = empty_answer(request)
    bits = as_bits(request.values, request.dtype)
    out_bits = as_bits(answer.values, request.dtype)
    size = network_size(request.k)
    warps = warps_for(max(power_of_two(bits.shape[1]), size), form.wide)
    for rows in row_blocks(request, size):
        count = rows.stop - rows.start
        launch(
            resident_kernel,
            count,
            {
                "values_ptr": part_of(bits, rows),
                "lengths_ptr": part_of(request.lengths, rows),
                "bits_ptr": torch.empty((count, size), dtype=bits.dtype, device=bits.device),
                "ids_ptr": torch.empty((count, size), dtype=torch.int32, device=bits.device),
                "out_values_ptr": part_of(out_bits, rows),
                "out_ids_ptr": part_of(answer.indices, rows),
                "nan_row_ptr": answer.nan_row,
                "first_row": rows.start,
                "stride": bits.stride(0),
                "n": bits.shape[1],
                "k": request.k,
            },
            constants={
                **constants_of(request),
                "CHECK_NAN": looks_for_nan(request),
                "MISSING": form.missing(request.largest),
                "SORTED": request.sorted,
                **tile_of(max(bits.shape[1], size), warps),
                "SIZE": size,
            },
            warps=warps,
        )
    if request.counters is not None:
        request.counters.examined = bits.numel()
        request.counters.compression_ratio = bits.shape[1] / request.k
        request.counters.threshold_ratio = 1.0
    return answer


class _Tally:
    """The statistics of a request's counters: equations 3 and 4 of the paper. Does nothing without counters."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.ratios: list[float] = []
        self.thresholds: list[Any] = []

    def add(self, counts: Any, last: Any) -> None:
        """Record a block of rows: the compression ratio, from the counts of survivors, and the threshold columns."""
        if self.request.counters is not None:
            self.ratios.append(self.request.values.shape[1] / int(counts.max()))
            self.thresholds.append(last.reshape(-1))

    def fill(self, answer: Answer) -> None:
        """Write the statistics of all blocks to the request's counters."""
        import torch

        counters = self.request.counters
        if counters is None:
            return
        values = self.request.values
        counters.examined = values.numel()
        counters.compression_ratio = sum(self.ratios) / len(self.ratios)
        last = torch.cat(self.thresholds).clamp(max=values.shape[1] - 1).long()
        at_threshold = values.gather(1, last[:, None])[:, 0].double()
        counters.threshold_ratio = float((answer.values[:, -1].double() / at_threshold).mean())
