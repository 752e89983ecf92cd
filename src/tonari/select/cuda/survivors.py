"""The survivors of each row on a GPU, and the last step of a selection, which turns survivors into the answer.

The survivors of a row are at most `capacity` pairs (value, column), among them the k smallest. A method finds the
survivors; this module sorts them and writes the answer. A sorting network in registers sorts them if they fit;
otherwise sorted runs are merged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from tonari.cuda.launch import launch
from tonari.select import tuning
from tonari.select.cuda.keys import FORMATS, as_bits, looks_for_nan
from tonari.select.request import Answer, Request

# The largest number of pairs that a network sorts; more pairs are sorted in runs, which are then merged.
LARGEST_NETWORK = 4096
# The largest number of pairs that a program holds in registers.
LARGEST_TILE = 16384


class Survivors(NamedTuple):
    """The survivors of a block of rows: a few pairs (value, column) that include the k smallest of each row.

    Attributes
    ----------
    rows : slice
        The rows of the request.
    bits, ids : tensors of shape (rows, capacity)
        Bits of the values, and their columns; only the first counts[i] of row i are valid.
    counts : int32 tensor of shape (rows,)
    nan_row : int32 tensor of one element
        The first row of the request that has NaN.
    """

    rows: slice
    bits: Any
    ids: Any
    counts: Any
    nan_row: Any

    def parts(self, step: int) -> Iterator[Survivors]:
        """Yield the same survivors in blocks of at most `step` rows, as views."""
        first = self.rows.start
        for begin in range(first, self.rows.stop, step):
            rows = slice(begin, min(begin + step, self.rows.stop))
            here = slice(rows.start - first, rows.stop - first)
            yield Survivors(rows, self.bits[here], self.ids[here], self.counts[here], self.nan_row)


def power_of_two(number: int) -> int:
    """Return the smallest power of two that is at least `number`."""
    return 1 << max(0, number - 1).bit_length()


def network_size(k: int) -> int:
    """Return the size of the sorting network for k pairs.

    For a small k the network is larger than k, which shortens the search for the survivors.
    """
    size = max(32, power_of_two(k))
    return 2 * size if 32 <= size <= 128 and 4 * k > 3 * size else size


def warps_for(tile: int, wide: bool) -> int:
    """Return the number of warps for a tile of pairs in registers: 16 to 32 pairs per thread, half for 64-bit keys."""
    tile *= 2 if wide else 1
    return min(16, max(1, min(tile // 512, 4), tile // 1024))


def tile_of(size: int, warps: int) -> dict[str, int]:
    """Return the shape [T, A, V], all powers of two, of a tile of at least `size` elements."""
    threads = 32 * warps
    size = max(threads, power_of_two(size))
    run = min(4, size // threads)
    return {"A": size // (threads * run), "T": threads, "V": run}


def part_of(tensor: Any, rows: slice) -> Any:
    """Return a slice of a tensor's rows; for all rows, return the tensor itself, because making a view takes time."""
    return tensor if tensor is None or tensor.shape[0] == rows.stop - rows.start else tensor[rows]


def row_blocks(request: Request, capacity: int) -> list[slice]:
    """Cut the rows into blocks that are answered one after another, which bounds the scratch memory."""
    rows = request.values.shape[0]
    block = max(32, tuning.SCRATCH_BYTES // (capacity * 16) // 32 * 32)  # whole warps of rows
    return [slice(begin, min(begin + block, rows)) for begin in range(0, rows, block)]


def empty_answer(request: Request) -> Answer:
    """Allocate the answer to a request, with nan_row only if the request asks for NaN detection."""
    import torch

    device = request.values.device
    shape = (request.values.shape[0], request.k)
    values = torch.empty(shape, dtype=request.values.dtype, device=device)
    indices = torch.empty(shape, dtype=torch.int32, device=device)
    if not looks_for_nan(request):
        return Answer(values, indices)
    return Answer(values, indices, torch.full((1,), 2**31 - 1, dtype=torch.int32, device=device))


def new_survivors(rows: slice, bits: Any, capacity: int, nan_row: Any) -> Survivors:
    """Allocate memory for up to `capacity` survivors of each of these rows; `bits` are the bits of their values."""
    import torch

    shape, device = (rows.stop - rows.start, capacity), bits.device
    return Survivors(
        rows,
        torch.empty(shape, dtype=bits.dtype, device=device),
        torch.empty(shape, dtype=torch.int32, device=device),
        torch.empty(shape[:1], dtype=torch.int32, device=device),
        nan_row,
    )


def answer_from_survivors(request: Request, capacity: int, narrow: Callable[[Survivors], None]) -> Answer:
    """Answer a request in blocks of rows: `narrow` finds the survivors of a block and writes them to its argument."""
    answer = empty_answer(request)
    bits = as_bits(request.values, request.dtype)
    for rows in row_blocks(request, capacity):
        survivors = new_survivors(rows, bits, capacity, answer.nan_row)
        narrow(survivors)
        # For more pairs than a run has, a network is slower than merging sorted runs, unless most pairs are dropped
        # first.
        if request.k > LARGEST_NETWORK or capacity > LARGEST_TILE or tuning.SORTED_RUN < capacity < 2 * request.k:
            _finish_by_merging(request, survivors, answer)
        else:
            _finish_by_network(request, survivors, answer)
    return answer


def answer_in_place(request: Request, narrow: Callable[[Survivors], None]) -> Answer:
    """Answer a request with sorted=False: `narrow` writes exactly the k smallest pairs of each row into the answer."""
    import torch

    answer = empty_answer(request)
    if request.lengths is not None:  # rows may have fewer than k values, and then missing entries
        answer.values.fill_(_missing_value(request))
        answer.indices.fill_(-1)
    rows = len(request.values)
    counts = torch.empty(rows, dtype=torch.int32, device=answer.values.device)
    bits = as_bits(answer.values, request.dtype)
    narrow(Survivors(slice(0, rows), bits, answer.indices, counts, answer.nan_row))
    return answer


def _finish_by_network(request: Request, survivors: Survivors, answer: Answer) -> None:
    from tonari.select.cuda.kernels.finish import finish_kernel

    form = FORMATS[request.dtype]
    rows = survivors.rows
    capacity = survivors.bits.shape[1]
    size = network_size(request.k)
    warps = warps_for(max(power_of_two(capacity), size), form.wide)
    launch(
        finish_kernel,
        len(survivors.bits),
        {
            "values_ptr": part_of(as_bits(request.values, request.dtype), rows),
            "bits_ptr": survivors.bits,
            "ids_ptr": survivors.ids,
            "counts_ptr": survivors.counts,
            "out_values_ptr": part_of(as_bits(answer.values, request.dtype), rows),
            "out_ids_ptr": part_of(answer.indices, rows),
            "stride": request.values.stride(0),
            "k": request.k,
            "capacity": capacity,
        },
        constants={
            **tile_of(capacity, warps),
            "SIZE": size,
            "SORTED": request.sorted,
            "MISSING": form.missing(request.largest),
            "INFINITE": form.infinite,
            "LARGEST": request.largest,
            "WIDE": form.wide,
        },
        warps=warps,
    )


def _finish_by_merging(request: Request, survivors: Survivors, answer: Answer) -> None:
    """Sort the survivors of each row in runs, then merge the runs in pairs until one is left, which is the answer."""
    import torch

    from tonari.select.cuda.kernels.runs import merge_kernel, sort_runs_kernel

    form = FORMATS[request.dtype]
    rows, bits, ids, counts, _ = survivors
    count, capacity = bits.shape
    key_dtype = torch.int64 if form.wide else torch.int32
    keys, key_ids = torch.empty_like(bits, dtype=key_dtype), torch.empty_like(ids)
    merged_keys, merged_ids = torch.empty_like(keys), torch.empty_like(key_ids)
    runs = -(-capacity // tuning.SORTED_RUN)
    constants = {"INFINITE": form.infinite, "LARGEST": request.largest, "WIDE": form.wide}
    launch(
        sort_runs_kernel,
        count * runs,
        {
            "bits_ptr": bits,
            "ids_ptr": ids,
            "counts_ptr": counts,
            "keys_ptr": keys,
            "out_ids_ptr": key_ids,
            "capacity": capacity,
            "runs": runs,
        },
        constants=constants | {"RUN": tuning.SORTED_RUN},
        warps=warps_for(tuning.SORTED_RUN, form.wide),
    )
    values = part_of(as_bits(request.values, request.dtype), rows)
    found_bits, found_ids = part_of(as_bits(answer.values, request.dtype), rows), part_of(answer.indices, rows)
    span = tuning.SORTED_RUN
    final = False
    while not final:
        final = 2 * span >= capacity
        tiles = -(-(request.k if final else capacity) // tuning.MERGE_TILE)
        launch(
            merge_kernel,
            count * tiles,
            {
                "values_ptr": values,
                "counts_ptr": counts,
                "keys_ptr": keys,
                "ids_ptr": key_ids,
                "out_keys_ptr": found_bits if final else merged_keys,
                "out_ids_ptr": found_ids if final else merged_ids,
                "stride": request.values.stride(0),
                "k": request.k,
                "capacity": capacity,
                "span": span,
                "tiles": tiles,
            },
            constants=constants | {"FINAL": final, "MISSING": form.missing(request.largest), "TILE": tuning.MERGE_TILE},
            warps=warps_for(tuning.MERGE_TILE, form.wide),
        )
        keys, key_ids, merged_keys, merged_ids = merged_keys, merged_ids, keys, key_ids
        span *= 2


def _missing_value(request: Request) -> float:
    """Return the value that stands for a missing entry: inf or -inf, or the end of an integer dtype's range."""
    import torch

    dtype = request.values.dtype
    if dtype.is_floating_point:
        return float("-inf") if request.largest else float("inf")
    limits = torch.iinfo(dtype)
    return float(limits.min if request.largest else limits.max)
