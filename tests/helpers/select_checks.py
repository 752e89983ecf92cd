"""Helpers for tests of k-selection: hard values, every method with its relevant options, and one assertion.

``test_select_checks.py`` shows that the assertion fails for wrong answers, and that values have the named properties.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.helpers.devices import HAS_TORCH
from tests.helpers.select_reference import select_k_reference
from tonari.select import Counters, Selection
from tonari.select.cuda.dispatch import select_on_gpu
from tonari.select.registry import make_options
from tonari.select.request import Request

Array = npt.NDArray[Any]

DTYPES = ("float32", "float16", "bfloat16", "float64", "int32", "uint8")
FLOATS = ("float32", "float16", "bfloat16", "float64")

if HAS_TORCH:
    import torch

# Options that change how a method works on the CPU; `GPU_VARIANTS` are those of a GPU.
_PARTITIONS: list[dict[str, Any]] = [{}, {"group": 2}, {"group": 4, "levels": 1}]
_BUFFERS: list[dict[str, Any]] = [
    {},
    {"buffer": "own", "buffer_size": 1},
    {"buffer": "own"},
    {"buffer": "full", "buffer_size": 3},
    {"buffer": "full"},
    {"buffer": "sorted", "buffer_size": 5},
]
_QUEUED = [buffer | partition for buffer, partition in itertools.product(_BUFFERS, _PARTITIONS)]
CPU_VARIANTS: dict[str, list[dict[str, Any]]] = {
    "auto": [{}],
    "insertion": _QUEUED,
    "heap": _QUEUED,
    "merge_queue": [
        *_QUEUED,
        *({"m": m, "aligned": aligned} for m in (1, 2, 64) for aligned in (True, False)),
        {"aligned": False, "buffer": "full", "group": 3},
        {"aligned": False, "buffer": "own", "m": 4, "group": 8},
    ],
    "hierarchical": [{}, {"group": 2}, {"group": 3, "levels": 1}, {"group": 16}, {"group": 2, "levels": 3}],
    "quick": [{}],
    "bitonic": [{}],
    "threshold": [
        {},
        {"samples": 1},
        {"samples": 50},
        {"samples": 100_000},
        {"batch": 1},
        {"batch": 24, "finish": "heap"},
        {"finish": "halving"},
    ],
    "radix": [{}, {"bits": 1}, {"bits": 5}, {"bits": 11}],
}
GPU_VARIANTS: dict[str, list[dict[str, Any]]] = {
    "auto": [{}],
    "insertion": [{}, {"buffer": "full", "buffer_size": 4}, {"buffer": "sorted", "group": 4}],
    "heap": [{}, {"buffer": "own", "buffer_size": 4}, {"group": 2, "levels": 1}],
    "merge_queue": [{}, {"aligned": False, "m": 2}, {"buffer": "sorted", "buffer_size": 4, "group": 4}],
    "hierarchical": [{}, {"group": 2, "levels": 1}],
    "quick": [{"unit": "warp"}, {"unit": "block"}],
    "bitonic": [{}],
    "threshold": [{}, {"samples": 64}],
    "radix": [{}, {"bits": 5}],
}


def variants(table: dict[str, list[dict[str, Any]]]) -> list[Any]:
    """Return (method, options) for pytest.mark.parametrize, with readable names."""
    return [
        pytest.param(method, options, id="-".join([method, *(f"{name}={value}" for name, value in options.items())]))
        for method, all_options in table.items()
        for options in all_options
    ]


# Each maker(rng, rows, n, dtype) returns an array of the dtype; for bfloat16, float32 values are rounded afterwards.
Maker = Callable[[np.random.Generator, int, int, str], Array]


def _scaled(numbers: Array, dtype: str) -> Array:
    """Convert numbers of about 1 to a dtype, after scaling if it is an integer dtype."""
    if dtype in FLOATS:
        return numbers.astype("float32" if dtype == "bfloat16" else dtype)
    limits = np.iinfo(dtype)
    return np.clip(np.rint(numbers * 60 + (limits.max + limits.min + 1) / 2), limits.min, limits.max).astype(dtype)


def random(rng: np.random.Generator, rows: int, n: int, dtype: str) -> Array:
    return _scaled(rng.standard_normal((rows, n)), dtype)


def ascending(rng: np.random.Generator, rows: int, n: int, dtype: str) -> Array:
    """Make ascending values: queues no longer change after k values."""
    return np.sort(random(rng, rows, n, dtype), axis=1)


def descending(rng: np.random.Generator, rows: int, n: int, dtype: str) -> Array:
    """Make descending values: every value enters a queue."""
    return ascending(rng, rows, n, dtype)[:, ::-1].copy()


def equal(rng: np.random.Generator, rows: int, n: int, dtype: str) -> Array:
    """Make rows of equal values: only the index decides."""
    return np.repeat(random(rng, rows, 1, dtype), n, axis=1)


def two_valued(rng: np.random.Generator, rows: int, n: int, dtype: str) -> Array:
    return _scaled(rng.integers(0, 2, (rows, n)) * 1.0, dtype)


def organ_pipe(rng: np.random.Generator, rows: int, n: int, dtype: str) -> Array:
    """Make values that ascend, then descend: the middle is the worst pivot, and all values but one occur twice."""
    column = np.arange(n)
    return np.tile(_scaled(np.minimum(column, n - 1 - column) / 50, dtype), (rows, 1))


def median_of_three_killer(rng: np.random.Generator, rows: int, n: int, dtype: str) -> Array:
    """Make rows in which the median of the first, middle and last value separates only two values (Musser 1997)."""
    half = n // 4 * 2
    ranks, first = np.arange(1, n + 1), np.arange(1, half + 1)
    ranks[:half] = np.where(first % 2, first, half + first - 1)  # 1 k+1 3 k+3 ... | 2 4 6 ... 2k
    ranks[half : 2 * half] = 2 * first
    return np.tile(_scaled(ranks / 50, dtype), (rows, 1))


def infinities(rng: np.random.Generator, rows: int, n: int, dtype: str) -> Array:
    """Make values of which a third are inf or -inf; for integers, the largest or the smallest number."""
    values = random(rng, rows, n, dtype)
    limits = (-np.inf, np.inf) if dtype in FLOATS else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    which = rng.integers(0, 6, (rows, n))
    values[which == 0], values[which == 1] = limits
    return values


def zeros(rng: np.random.Generator, rows: int, n: int, dtype: str) -> Array:
    """Make -0.0 and 0.0, which are equal, and some -1 and 1."""
    if dtype in FLOATS:
        return rng.choice([-0.0, 0.0, -0.0, 0.0, -1.0, 1.0], (rows, n)).astype(
            "float32" if dtype == "bfloat16" else dtype
        )
    return rng.integers(0, 2, (rows, n)).astype(dtype)


def leading_bits(rng: np.random.Generator, rows: int, n: int, dtype: str) -> Array:
    """Make values that differ only in their last four bits."""
    if dtype not in FLOATS:
        return (100 + rng.integers(0, 16, (rows, n))).astype(dtype)
    held = np.dtype("float32" if dtype == "bfloat16" else dtype)
    step = np.int32(1) << 16 if dtype == "bfloat16" else 1
    one = np.ones((), held).view(f"i{held.itemsize}")
    return (one + step * rng.integers(0, 16, (rows, n))).astype(one.dtype).view(held)


def subnormal(rng: np.random.Generator, rows: int, n: int, dtype: str) -> Array:
    """Make numbers below the smallest normal one, of both signs: flushing to zero makes all equal."""
    if dtype not in FLOATS:
        return random(rng, rows, n, dtype)
    held = np.dtype("float32" if dtype == "bfloat16" else dtype)
    smallest = np.finfo(held).smallest_subnormal * held.type(2**16 if dtype == "bfloat16" else 1)
    return (rng.integers(-100, 100, (rows, n)).astype(held) * smallest).astype(held)


MAKERS: dict[str, Maker] = {
    maker.__name__: maker
    for maker in (
        random,
        ascending,
        descending,
        equal,
        two_valued,
        organ_pipe,
        median_of_three_killer,
        infinities,
        zeros,
        leading_bits,
        subnormal,
    )
}


def make(maker: str, rows: int, n: int, dtype: str, seed: int = 0) -> Any:
    """Make the values of this name: a NumPy array, or a torch tensor for bfloat16."""
    values = MAKERS[maker](np.random.default_rng([seed, rows, n]), rows, n, dtype)
    return torch.from_numpy(values).to(torch.bfloat16) if dtype == "bfloat16" else values


def some_lengths(rows: int, n: int, seed: int = 0) -> Array:
    """Make row lengths from 0 to n; with two rows or more, both extremes occur."""
    lengths = np.random.default_rng([seed, rows, n]).integers(0, n + 1, rows)
    lengths[:1], lengths[1:2] = 0, n
    return lengths


def assert_selection(found: Selection, values: Any, k: int, *, sorted: bool = True, **arguments: Any) -> None:
    """Check a selection to the last bit against NumPy's stable sort: kind, dtype, shape, values, indices.

    `values` are on the CPU; with ``sorted=False`` rows are compared as sets.
    """
    assert_same(found, select_k_reference(values, k, **arguments), sorted=sorted)


def assert_same(found: Selection, truth: Selection, *, sorted: bool = True) -> None:
    """Check that two selections are equal to the last bit, or with ``sorted=False`` up to the order within rows."""
    assert isinstance(found, Selection), f"a {type(found).__name__} is not a Selection"
    for name, ours, theirs in zip(("values", "indices"), found, truth, strict=True):
        assert type(ours) is type(theirs), f"{name}: {type(ours).__name__} instead of {type(theirs).__name__}"
        assert ours.dtype == theirs.dtype, f"{name}: {ours.dtype} instead of {theirs.dtype}"
        assert ours.shape == theirs.shape, f"{name}: shape {tuple(ours.shape)} instead of {tuple(theirs.shape)}"
    pairs = [_bits(selection, ordered=sorted) for selection in (found, truth)]
    different = (pairs[0] != pairs[1]).any(axis=2)
    if different.any():
        row = int(different.any(axis=1).argmax())
        columns = np.flatnonzero(different[row])[:10].tolist()
        raise AssertionError(
            f"{int(different.any(axis=1).sum())} of {len(different)} rows differ; the first is row {row}, "
            f"in columns {columns}:\n"
            f"found {found.indices[row][columns].tolist()} at {found.values[row][columns].tolist()}\n"
            f"truth {truth.indices[row][columns].tolist()} at {truth.values[row][columns].tolist()}"
        )


def assert_smallest(found: Selection, values: Any, k: int, *, largest: bool = False) -> None:
    """Check a selection of tensors without NaN on their device without sorting, for rows too long to sort.

    The k selected pairs must be different, and in order. They are the smallest if exactly k pairs of the row are not
    after the last one.
    """
    best, columns = found
    rows, n = values.shape
    assert best.shape == columns.shape == (rows, k), f"shapes {tuple(best.shape)} and {tuple(columns.shape)}"
    assert best.dtype == values.dtype, f"{best.dtype} instead of {values.dtype}"
    assert columns.dtype == torch.int32, f"indices are {columns.dtype}"
    _assert_each((columns >= 0) & (columns < n), 0, "index out of range")
    places = torch.arange(n, dtype=torch.int32, device=values.device)
    block = max(1, 2**24 // n)  # rows that are checked together
    for begin in range(0, rows, block):
        ours, at, theirs = (part[begin : begin + block] for part in (best, columns, values))
        _assert_each(ours == theirs.gather(1, at.long()), begin, "value of another column")
        before, after = (ours[:, 1:], ours[:, :-1]) if largest else (ours[:, :-1], ours[:, 1:])
        _assert_each((before < after) | ((before == after) & (at[:, :-1] < at[:, 1:])), begin, "out of order")
        last, last_at = ours[:, -1:], at[:, -1:]
        better = theirs > last if largest else theirs < last
        reached = (better | ((theirs == last) & (places <= last_at))).sum(dim=1, keepdim=True)
        _assert_each(reached == k, begin, f"other than {k} pairs come no later than the last")


def _assert_each(right: Any, begin: int, what: str) -> None:
    if not bool(right.all()):
        row, column = right.logical_not().nonzero()[0].tolist()
        raise AssertionError(f"row {begin + row}: {what} at {column}")


def _bits(selection: Selection, *, ordered: bool) -> Array:
    """Return pairs (bits of the value, index) of shape (rows, k, 2), sorted by index unless `ordered`."""
    values, indices = selection
    if not isinstance(values, np.ndarray):
        values = values.view(torch.int16).numpy() if values.dtype == torch.bfloat16 else values.numpy()
        indices = indices.numpy()
    pairs = np.stack([values.view(f"i{values.itemsize}").astype(np.int64), indices.astype(np.int64)], axis=2)
    if ordered:
        return pairs
    order = np.argsort(indices, axis=1, kind="stable")
    return np.take_along_axis(pairs, order[:, :, None], axis=1)


def select_by_kernels(
    device: str,
    method: str,
    values: Any,
    k: int,
    *,
    largest: bool = False,
    sorted: bool = True,
    lengths: Any = None,
    nan: str = "refuse",
    counters: Counters | None = None,
    **options: Any,
) -> tuple[Selection, int | None]:
    """Select by a method's GPU kernels, interpreted on "cpu"; return the answer on the CPU, and the first row with
    NaN.
    """
    tensor = torch.from_numpy(values) if isinstance(values, np.ndarray) else values
    request = Request(
        tensor.to(device),
        str(tensor.dtype).removeprefix("torch."),
        k,
        make_options(method, options, "cuda"),
        largest=largest,
        sorted=sorted,
        lengths=None if lengths is None else torch.from_numpy(np.asarray(lengths, np.int64)).to(device),
        counters=counters,
        check_nan=nan == "refuse" and tensor.dtype.is_floating_point,
    )
    found, nan_row = select_on_gpu(method, request)
    return Selection(found.values.cpu(), found.indices.cpu()), nan_row


def check_kernels(device: str, method: str, values: Any, k: int, *, options: dict[str, Any], **arguments: Any) -> None:
    """Check the answer of a method's GPU kernels to the last bit; `values` have no NaN."""
    tensor = torch.from_numpy(values) if isinstance(values, np.ndarray) else values
    found, nan_row = select_by_kernels(device, method, tensor, k, **options, **arguments)
    ordered = arguments.pop("sorted", True)
    assert_same(found, select_k_reference(tensor, k, **arguments), sorted=ordered)
    assert nan_row is None, f"row {nan_row} is said to have NaN"
