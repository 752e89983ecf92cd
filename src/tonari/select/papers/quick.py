"""Quick multi-select: Komarov, Dashti and D'Souza 2014, "Fast k-NNG Construction with GPU-Based Quick Multi-Select".

All rows are processed at once, each by quick select ("Methods and Materials", algorithm 1). A pivot partitions a range
of values in one read. If more values than required are below the pivot, these values are the next range. Otherwise all
values below the pivot belong to the answer: they stay in place, a stack refers to them, and the values above the pivot
are the next range. The answer is sorted only at the end.

Equal values need no special treatment, since pivots are (value, index) pairs. After a bad pivot, the next pivot is the
middle of the interval of values that are still possible, so that no row takes more than some hundred rounds.
"""

from __future__ import annotations

from dataclasses import dataclass

from tonari.cuda.launch import launch
from tonari.select.cuda.keys import FORMATS, as_bits, constants_of, looks_for_nan
from tonari.select.cuda.survivors import Survivors, answer_from_survivors, network_size
from tonari.select.request import Answer, Request

UNITS = ("warp", "block")
# For each value of the option `unit`: (values per tile, warps per program).
TILES = {"warp": (512, 1), "block": (4096, 8)}
# Maximum bytes of scratch memory per launch (two arrays and a stack for each row). Rows that do not fit are processed
# in further launches.
SCRATCH_BYTES = 2 << 30


@dataclass(frozen=True, kw_only=True)
class Options:
    """Options of ``method="quick"``.

    Attributes
    ----------
    unit : "warp" or "block"
        On a GPU: whether a warp or a block of threads processes each row. The paper uses a block per row if rows are
        few or long.
    """

    unit: str = "block"

    def __post_init__(self) -> None:
        if self.unit not in UNITS:
            raise ValueError(f"unit={self.unit!r}: expected one of {', '.join(UNITS)}")


def select_on_gpu(request: Request) -> Answer:
    """Answer a request by quick multi-select, on the device that holds its values."""
    import torch

    from tonari.select.papers.kernels.quick import DEPTH, quick_kernel

    form = FORMATS[request.dtype]
    bits = as_bits(request.values, request.dtype)
    n = bits.shape[1]
    capacity = network_size(request.k)
    tile, warps = TILES[request.options.unit]
    threads, run = 32 * warps, 2 if form.wide else 4
    examined = torch.zeros(1, dtype=torch.int64, device=bits.device)

    def narrow(survivors: Survivors) -> None:
        step = max(1, SCRATCH_BYTES // (2 * n * (bits.element_size() + 4)))
        for part in survivors.parts(step):
            rows, count = part.rows, len(part.counts)
            launch(
                quick_kernel,
                count,
                {
                    "values_ptr": bits[rows],
                    "lengths_ptr": None if request.lengths is None else request.lengths[rows],
                    "bits_ptr": torch.empty((count, 2, n), dtype=bits.dtype, device=bits.device),
                    "ids_ptr": torch.empty((count, 2, n), dtype=torch.int32, device=bits.device),
                    "stack_ptr": torch.empty((count, DEPTH.value, 2), dtype=torch.int32, device=bits.device),
                    "out_bits_ptr": part.bits,
                    "out_ids_ptr": part.ids,
                    "counts_ptr": part.counts,
                    "examined_ptr": examined,
                    "nan_row_ptr": part.nan_row,
                    "first_row": rows.start,
                    "stride": bits.stride(0),
                    "n": n,
                    "k": request.k,
                    "capacity": capacity,
                },
                constants={
                    **constants_of(request),
                    "COUNT": request.counters is not None,
                    "CHECK_NAN": looks_for_nan(request),
                    "A": tile // (threads * run),
                    "T": threads,
                    "V": run,
                },
                warps=warps,
            )

    answer = answer_from_survivors(request, capacity, narrow)
    if request.counters is not None:
        request.counters.examined = int(examined.item())
    return answer
