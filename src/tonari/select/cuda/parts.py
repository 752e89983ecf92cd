"""Selection from few long rows: every row is cut into parts that fit into registers (kernels/parts.py).

    row fits into a tile       answer                      one launch, one read
    longer                     part, answer                two launches, one read
    longer still               part, lists, ..., answer    until the remaining pairs of a row fit into a tile

A part keeps from k to `keep` pairs; the more it may keep, the sooner its bisection ends. The host decides nothing
between launches, so they can be captured as a CUDA graph. No memory has to be set to zero before them.

With so few values, preparing the launches takes the host longer than the device needs to run them. The prepared
launches for a shape are therefore kept: a later call only allocates the answer and scratch memory, and launches
(:class:`_Kept`).
"""

from __future__ import annotations

import sys
import threading
from dataclasses import dataclass
from typing import Any, NamedTuple

from tonari.core.process.caches import cached, emptied_by
from tonari.cuda.launch import Launch
from tonari.select import tuning
from tonari.select.cuda.keys import FORMATS, as_bits, constants_of, looks_for_nan
from tonari.select.cuda.survivors import LARGEST_NETWORK, empty_answer, network_size, power_of_two, tile_of
from tonari.select.request import Answer, Request, Selection


class Level(NamedTuple):
    """One launch, which cuts rows of `width` pairs into parts of `tile` pairs and keeps up to `keep` of each."""

    width: int
    tile: int
    parts: int
    keep: int


@dataclass(frozen=True)
class Shape:
    """The launches of a selection: the levels, then the answer from the `width` pairs of each row that are left."""

    levels: tuple[Level, ...]
    width: int


def suits(rows: int, n: int) -> bool:
    """Whether the rows of a (rows, n) matrix are few and long enough to be cut into parts."""
    return rows <= tuning.PARTS_ROWS and tuning.LARGEST_RESIDENT < n <= tuning.PARTS_COLUMNS


@cached(maxsize=1024)
def shape_for(n: int, k: int, wide: bool) -> Shape | None:
    """Choose the launches for rows of n values; None if k is so large that parts would keep too many of their pairs.

    >>> shape_for(100_000, 64, False)
    Shape(levels=(Level(width=100000, tile=8192, parts=13, keep=96),), width=1248)
    """
    tile = max(tuning.PARTS_TILE // (2 if wide else 1), power_of_two(tuning.PARTS_OVER_K * k))
    slack = max(tuning.PARTS_SLACK_LEAST, int(k * tuning.PARTS_SLACK))
    if k > LARGEST_NETWORK or tile > tuning.PARTS_LARGEST_TILE // (2 if wide else 1):
        return None
    width = n
    levels: list[Level] = []
    while width > tile:
        parts = -(-width // tile)
        # With fewer pairs per part, a single further launch may be enough for the remaining pairs.
        keep = tile // parts if parts * k <= tile < parts * (k + slack) else k + slack
        levels.append(Level(width, tile, parts, keep))
        width = parts * keep
    return Shape(tuple(levels), width)


# The names of each launch's tensors that differ between calls, in the order that `Launch.repeated` expects.
_PART, _LISTS = ("values_ptr", "lists_ptr"), ("lists_ptr",)
_ANSWER = ("values_ptr", "lists_ptr", "out_values_ptr", "out_columns_ptr")


def select_in_parts(request: Request, shape: Shape) -> Answer:
    """Answer a request by the launches of `shape`, or repeat the launches of an earlier request like it."""
    import torch

    key = None
    if request.values.is_cuda and request.lengths is None and not looks_for_nan(request):
        key = _key(request.values, request.k, request.largest, request.sorted)
        kept = _KEPT.get(key)
        found = None if kept is None else kept(request.values)
        if found is not None:
            return Answer(*found)
    answer = empty_answer(request)
    rows = len(request.values)
    slots = rows * sum(level.parts * level.keep for level in shape.levels)
    scratch = torch.empty(
        2 * (slots + rows * network_size(request.k)),
        dtype=torch.int64 if FORMATS[request.dtype].wide else torch.int32,
        device=request.values.device,
    )
    steps = _steps(request, shape, answer, scratch)
    for step, _ in steps:
        step()
    if key is not None:
        if len(_KEPT) >= tuning.PARTS_KEPT:
            _KEPT.clear()
        _KEPT[key] = _Kept(answer, scratch, steps)
    return answer


def _steps(request: Request, shape: Shape, answer: Answer, scratch: Any) -> list[tuple[Launch, tuple[str, ...]]]:
    """Return the launches for a request, each with the names of the tensors that later calls replace."""
    from tonari.select.cuda.kernels.parts import lists_kernel, part_kernel, parts_answer_kernel

    form = FORMATS[request.dtype]
    bits = as_bits(request.values, request.dtype)
    rows, n = bits.shape
    size = network_size(request.k)
    narrow = bits.element_size() <= 2
    constants = constants_of(request) | {"CHECK_NAN": looks_for_nan(request), "NARROW": narrow}
    given = {"lists_ptr": scratch, "k": request.k}
    of_values = given | {
        "values_ptr": bits,
        "lengths_ptr": request.lengths,
        "nan_row_ptr": answer.nan_row,
        "stride": bits.stride(0),
        "n": n,
    }
    steps: list[tuple[Launch, tuple[str, ...]]] = []
    begin = lists_at = columns_at = 0
    for level in shape.levels:
        slots = rows * level.parts * level.keep
        cut = {"parts": level.parts, "keep": level.keep}
        options, tile = _tile(level.tile, form.wide)
        if not steps:
            arguments = of_values | cut | {"columns_at": slots}
            step = Launch(part_kernel, rows * level.parts, arguments, constants=constants | tile, **options)
            steps.append((step, _PART))
        else:
            arguments = given | cut | {"width": level.width, "lists_at": lists_at, "columns_at": columns_at}
            arguments |= {"out_at": begin, "out_columns_at": slots}
            tile |= {"WIDE": form.wide, "NARROW": narrow}
            step = Launch(lists_kernel, rows * level.parts, arguments, constants=tile, **options)
            steps.append((step, _LISTS))
        lists_at, columns_at, begin = begin, slots, begin + 2 * slots
    options, tile = _tile(max(shape.width, size), form.wide)
    arguments = of_values | {
        "out_values_ptr": as_bits(answer.values, request.dtype),
        "out_columns_ptr": answer.indices,
        "width": shape.width,
        "lists_at": lists_at,
        "columns_at": columns_at,
        "packed_at": begin,
    }
    constants |= tile | {
        "MISSING": form.missing(request.largest),
        "SORTED": request.sorted,
        "LISTS": bool(steps),
        "SIZE": size,
    }
    return [*steps, (Launch(parts_answer_kernel, rows, arguments, constants=constants, **options), _ANSWER)]


def _tile(size: int, wide: bool) -> tuple[dict[str, int], dict[str, int]]:
    """Choose a tile of at least `size` keys; return the options of a launch with this tile, and its constants."""
    size = power_of_two(size)
    warps = min(32, max(tuning.PARTS_LEAST_WARPS, size * (2 if wide else 1) // (32 * tuning.PARTS_PER_THREAD)))
    tile = tile_of(size, warps)
    return {"warps": warps}, {**tile, "B": min(tuning.PARTS_COLLECTED_RUNS, tile["A"])}


class _Kept:
    """The launches of an earlier selection, which can be repeated for values of the same shape at another address."""

    def __init__(self, answer: Answer, scratch: Any, steps: list[tuple[Launch, tuple[str, ...]]]) -> None:
        device = scratch.device
        self._device_index = device.index
        self._values = {"size": answer.values.shape, "dtype": answer.values.dtype, "device": device}
        self._indices = {"size": answer.indices.shape, "dtype": answer.indices.dtype, "device": device}
        self._scratch = {"size": scratch.shape, "dtype": scratch.dtype, "device": device}
        *levels, last = [step.repeated(*names) for step, names in steps]
        self._first, self._between, self._last = levels[0] if levels else None, levels[1:], last
        self._lock = threading.Lock()  # only one thread at once may use a repeated launch

    def __call__(self, values: Any) -> Selection | None:
        import torch

        if torch._C._cuda_getDevice() != self._device_index:  # Triton launches on the current device
            return None
        stream = torch._C._cuda_getCurrentRawStream(self._device_index)
        scratch = torch.empty(**self._scratch)
        with self._lock:
            if self._first is not None:
                self._first(stream, values, scratch)
                for step in self._between:
                    step(stream, scratch)
            found = Selection(torch.empty(**self._values), torch.empty(**self._indices))
            self._last(stream, values, scratch, *found)
        return found


_KEPT: dict[tuple[Any, ...], _Kept] = {}
emptied_by(_KEPT.clear)


def _key(values: Any, k: int, largest: bool, sorted: bool) -> tuple[Any, ...]:
    """Return the key under which launches are stored: all that compiled kernels depend on, including the alignment."""
    aligned = values.data_ptr() & 15 == 0
    return values.shape, values.stride(), values.dtype, values.device, aligned, k, largest, sorted


def repeated(values: Any, k: Any, largest: Any, sorted: Any) -> Selection | None:
    """Select from new values by the launches of an earlier selection on CUDA with nan="last"; None if none matches.

    The arguments are not checked. Therefore None is also returned unless their types, and the values of k, `largest`
    and `sorted`, equal those of the earlier selection, whose arguments were checked.
    """
    torch: Any = sys.modules.get("torch")  # while torch is not imported, no selection can have been kept
    if not _KEPT or type(values) is not torch.Tensor or not values.is_cuda:
        return None
    if values.layout is not torch.strided or values.is_nested or values.is_neg():
        return None
    if type(k) is not int or type(largest) is not bool or type(sorted) is not bool:
        return None
    kept = _KEPT.get(_key(values, k, largest, sorted))
    return None if kept is None else kept(values)
