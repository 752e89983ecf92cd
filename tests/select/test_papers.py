"""The compiled queues on their own: insertion, heap and merge queue, each with buffers and partitions, on every
instruction set, against NumPy's stable sort; and counters that can be worked out by hand."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tonari.core import _native

Array = npt.NDArray[Any]

ISAS = [isa for isa in _native.supported_isas() if isa != "amx"]  # which has no more instructions for this than AVX-512
QUEUES = ("insertion", "heap", "merge_queue")
HELD = {  # the storage of the bits of each dtype
    "float32": np.float32,
    "float16": np.float16,
    "bfloat16": np.int16,
    "float64": np.float64,
    "int32": np.int32,
    "uint8": np.uint8,
}
BUFFERS = [("none", 16), ("own", 1), ("own", 16), ("full", 3), ("full", 16), ("sorted", 16), ("sorted", 37)]
PARTITIONS = [(0, 0), (4, 0), (3, 1), (2, 2), (1000, 0)]
OPTIONS = [
    {"buffer": buffer, "buffer_size": size, "group": group, "levels": levels}
    for (buffer, size), (group, levels) in itertools.product(BUFFERS, PARTITIONS)
]
MERGE_OPTIONS = [{"m": m, "aligned": aligned} for m, aligned in itertools.product((1, 8, 128), (True, False))]


def select(
    method: str,
    values: Array,
    value_type: str,
    k: int,
    *,
    isa: str = ISAS[-1],
    begin: int = 0,
    end: int | None = None,
    lengths: Array | None = None,
    largest: bool = False,
    sorted: bool = True,
    counters: _native.SelectCounters | None = None,
    **options: Any,
) -> tuple[Array, Array, int]:
    """Return values and indices of rows [begin, end), and the reported NaN; check that other rows stay untouched."""
    end = len(values) if end is None else end
    out_values = np.full((len(values), k), 99, values.dtype)
    out_indices = np.full((len(values), k), -99, np.int32)
    nan_row = _native.select_rows(
        isa,
        method,
        values,
        value_type,
        begin,
        end,
        k,
        lengths=lengths,
        largest=largest,
        sorted=sorted,
        options=options,
        out_values=out_values,
        out_indices=out_indices,
        counters=counters,
    )
    outside = np.r_[0:begin, end : len(values)]
    assert (out_indices[outside] == -99).all()
    assert (out_values[outside] == 99).all()
    return out_values[begin:end], out_indices[begin:end], nan_row


def numbers(values: Array, value_type: str) -> Array:
    """Return the values as NumPy compares them."""
    return (values.astype(np.int32) << 16).view(np.float32) if value_type == "bfloat16" else values


def assert_selected(
    found: tuple[Array, Array],
    values: Array,
    value_type: str,
    k: int,
    lengths: Array | None = None,
    largest: bool = False,
) -> None:
    compared = numbers(values, value_type)
    keys = compared
    if largest:
        keys = -compared if compared.dtype.kind == "f" else ~compared
    for row, (row_values, row_indices) in enumerate(zip(*found, strict=True)):
        length = values.shape[1] if lengths is None else lengths[row]
        expected = np.argsort(keys[row, :length], kind="stable")[:k]
        there = len(expected)
        np.testing.assert_array_equal(row_indices[:there], expected, err_msg=f"row {row}")
        assert row_values[:there].tobytes() == values[row, expected].tobytes(), f"row {row}: not the original bits"
        assert (row_indices[there:] == -1).all()
        if compared.dtype.kind == "f":
            last = -np.inf if largest else np.inf
        else:
            last = np.iinfo(compared.dtype).min if largest else np.iinfo(compared.dtype).max
        assert (numbers(row_values[there:], value_type) == last).all()


def some_values(rows: int, n: int, value_type: str, seed: int) -> Array:
    """Make random rows, rows with many ties, ascending and descending rows, with the ends of the dtype's range among
    them.
    """
    rng = np.random.default_rng(seed)
    values = rng.standard_normal((rows, n)) * 40
    values[1::4] = np.rint(values[1::4] / 30)
    values[2::4].sort(axis=1)
    values[3::4] = -np.sort(-values[3::4], axis=1)
    held = np.float32 if value_type == "bfloat16" else HELD[value_type]
    if np.issubdtype(held, np.floating):
        result = values.astype(held)
        ends = (-np.inf, np.inf, -0.0)
    else:
        limits = np.iinfo(held)
        result = np.clip(np.rint(values), limits.min, limits.max).astype(held)
        ends = (limits.min, limits.max, 0)
    for end in ends:
        result[rng.random((rows, n)) < 0.01] = end
    return (result.view(np.int32) >> 16).astype(np.int16) if value_type == "bfloat16" else result


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("value_type", HELD)
@pytest.mark.parametrize("method", QUEUES)
def test_every_option_gives_what_a_stable_sort_gives(method: str, value_type: str, isa: str) -> None:
    """Rows of several chunks, remaining lanes, and shapes and flags that change from option to option."""
    shapes = [(19, 300, 40), (5, 1030, 17), (33, 61, 61), (16, 257, 1), (1, 100, 99)]
    for at, options in enumerate(OPTIONS):
        rows, n, k = shapes[at % len(shapes)]
        values = some_values(rows, n, value_type, at)
        arguments: dict[str, Any] = {"largest": at % 2 == 1}
        if at % 3 == 2:
            arguments["lengths"] = np.random.default_rng(at).integers(0, n + 1, rows)
        merging = MERGE_OPTIONS[at % len(MERGE_OPTIONS)] if method == "merge_queue" else {}
        *found, nan_row = select(method, values, value_type, k, isa=isa, **arguments, **options, **merging)
        assert nan_row == -1
        assert_selected((found[0], found[1]), values, value_type, k, **arguments)


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("method", QUEUES)
def test_edges_of_shapes(method: str, isa: str) -> None:
    for rows, n, k in ((0, 3, 2), (1, 1, 1), (17, 1, 1), (16, 16, 16), (3, 256, 256), (2, 513, 200)):
        for value_type in ("float32", "float64"):
            values = some_values(rows, n, value_type, n)
            for options in ({}, {"buffer": "sorted", "buffer_size": 4}, {"group": 2, "buffer": "own"}):
                *found, _ = select(method, values, value_type, k, isa=isa, **options)
                assert_selected((found[0], found[1]), values, value_type, k)


@pytest.mark.parametrize("method", QUEUES)
def test_any_rows_of_a_matrix_with_any_stride(method: str) -> None:
    wide = some_values(50, 333, "float32", 0)
    values = wide[::2, 7:300]
    for begin, end in ((0, 25), (3, 20), (16, 16), (17, 25), (24, 25)):
        *found, _ = select(method, values, "float32", 20, begin=begin, end=end, buffer="full", group=4)
        assert_selected((found[0], found[1]), values[begin:end], "float32", 20)


@pytest.mark.parametrize("method", QUEUES)
def test_unsorted_answers_are_the_same_sets(method: str) -> None:
    values = some_values(20, 200, "float32", 1)
    expected = select(method, values, "float32", 30)[1]
    found = select(method, values, "float32", 30, sorted=False)
    np.testing.assert_array_equal(np.sort(found[1]), np.sort(expected))
    assert found[0].tobytes() == np.take_along_axis(values, found[1], axis=1).tobytes()


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("value_type", ["float32", "float16", "bfloat16", "float64"])
@pytest.mark.parametrize("method", QUEUES)
def test_nan_is_told_of_and_comes_last(method: str, value_type: str, isa: str) -> None:
    rows, n, k = 40, 300, 290
    values = some_values(rows, n, value_type, 2)
    nan, negative = (0x7FC0, -0x40) if value_type == "bfloat16" else (np.nan, -np.nan)
    values[21, 299] = values[37, 0] = nan
    values[22, :20] = negative  # with the sign set, and so many that some are among the k smallest
    for options in ({}, {"buffer": "sorted", "group": 4}):
        for largest in (False, True):
            *found, nan_row = select(method, values, value_type, k, isa=isa, largest=largest, **options)
            assert nan_row == 21
            assert_selected((found[0], found[1]), values, value_type, k, largest=largest)
        assert select(method, values, value_type, k, isa=isa, begin=22, **options)[2] == 22
        assert select(method, values, value_type, k, isa=isa, end=21, **options)[2] == -1
        lengths = np.full(rows, n)
        lengths[[21, 22]] = 299, 0
        assert select(method, values, value_type, k, isa=isa, lengths=lengths, **options)[2] == 37


def counted(method: str, values: Array, k: int, isa: str, **options: Any) -> _native.SelectCounters:
    counters = _native.SelectCounters()
    select(method, values, values.dtype.name, k, isa=isa, counters=counters, **options)
    return counters


ROWS, N, K = 35, 300, 12
DESCENDING = np.tile(np.arange(N, 0, -1, dtype=np.float32), (ROWS, 1))


@pytest.mark.parametrize("isa", ISAS)
class TestCounters:
    def test_insertion_updates(self, isa: str) -> None:
        """Descending values all go to the end, past all others; ascending ones go one place before the last."""
        for dtype, lanes in ((np.float32, 16), (np.float64, 8)):
            counters = counted("insertion", DESCENDING.astype(dtype), K, isa)
            assert counters.updates == [ROWS * N] * K
            assert counters.lanes == lanes
            ascending = DESCENDING[:, ::-1].astype(dtype)
            assert counted("insertion", ascending, K, isa).updates == [ROWS * (K - p) for p in range(K)]

    def test_insertion_updates_in_random_order(self, isa: str) -> None:
        """Figure 5: the position of the j-th smallest is written sum of min(1, j / i) times, i = 1 ... n."""
        rows, n, k = 400, 1000, 32
        values = np.random.default_rng(0).permuted(np.tile(np.arange(n, dtype=np.float32), (rows, 1)), axis=1)
        position, i = np.arange(k)[:, None], np.arange(1, n + 1)
        expected = np.minimum(1, (k - position) / i).sum(axis=1)
        for options in ({}, {"buffer": "full"}):
            updates = np.array(counted("insertion", values, k, isa, **options).updates) / rows
            # Independent of each other, with a variance below the mean; buffers keep the order of entering values.
            assert (np.abs(updates - expected) < 4 * np.sqrt(expected / rows)).all()

    def test_heap_updates(self, isa: str) -> None:
        """Three places: 4 3 2 1 go down to the left, to the right, ... until the children are smaller."""
        values = np.array([[4, 3, 2, 1]], np.float32)
        # pads: [x x x] -> 4: [x 4 x] -> 3: [x 4 3] -> 2: [4 2 3] -> 1: [3 2 1]
        assert counted("heap", values, 3, isa).updates == [4, 2, 2]
        # [x x x] -> 1: [x 1 x] -> 2: [x 1 2] -> 3: [3 1 2], without a move; 4 is too large
        assert counted("heap", values[:, ::-1].copy(), 3, isa).updates == [3, 1, 1]

    def test_merges_of_two_places(self, isa: str) -> None:
        """Two levels of one: each time, a smaller value enters at the head and changes places with the other."""
        counters = counted("merge_queue", DESCENDING, 2, isa, m=1)
        assert counters.updates == [2 * ROWS * N, ROWS * N]
        assert counters.merges == ROWS * N

    def test_aligned_queues_merge_together(self, isa: str) -> None:
        """One lane must merge at every column, others at the first: equal values come in order of their index."""
        values = np.ones((ROWS, N), np.float32)
        values[3] = DESCENDING[0]
        assert counted("merge_queue", values, 2, isa, m=1, aligned=False).merges == N + ROWS - 1
        assert counted("merge_queue", values, 2, isa, m=1, aligned=True).merges == 16 * N + ROWS - 16
        # Lanes that empty their own buffer do so alone.
        assert counted("merge_queue", values, 2, isa, m=1, aligned=True, buffer="own").merges == N + ROWS - 1

    def test_levels_hold_k(self, isa: str) -> None:
        for k, size in ((1, 8), (8, 8), (9, 16), (16, 16), (33, 64)):
            assert len(counted("merge_queue", DESCENDING, k, isa).updates) == size

    def test_flushes(self, isa: str) -> None:
        """All descending values are candidates, so buffers of b fill together, every b columns."""
        for size in (1, 7, 16, 299, 300, 301, 10**12):
            each = -(-N // size)
            for method in QUEUES:
                assert counted(method, DESCENDING, K, isa, buffer="own", buffer_size=size).flushes == ROWS * each
                for buffer in ("full", "sorted"):
                    counters = counted(method, DESCENDING, K, isa, buffer=buffer, buffer_size=size)
                    assert counters.flushes == -(-ROWS // 16) * each
        assert counted("heap", DESCENDING, K, isa).flushes == 0

    def test_sorted_buffers_insert_the_smallest_first(self, isa: str) -> None:
        """Of 16 descending values only the K smallest are inserted, in ascending order."""
        updates = counted("insertion", DESCENDING[:16, :16], K, isa, buffer="sorted").updates
        assert updates == [16 * (K - p) for p in range(K)]

    def test_examined(self, isa: str) -> None:
        """300 values, 75 groups of 4, 19 groups of 4 of these, 5 of these."""
        for method in QUEUES[:2]:
            assert counted(method, DESCENDING, K, isa).examined == ROWS * N
            # The last groups are full, except the last of the 19 (3 of 75).
            assert counted(method, DESCENDING, K, isa, group=4).examined == ROWS * (5 + 19 + (4 * 11 + 3) + 4 * K)
            assert counted(method, DESCENDING, K, isa, group=4, levels=1).examined == ROWS * (75 + 4 * K)
        lengths = np.arange(ROWS)
        assert counted("heap", DESCENDING, K, isa, lengths=lengths).examined == lengths.sum()

    def test_counters_add_up(self, isa: str) -> None:
        counters = _native.SelectCounters()
        for begin, end in ((0, 16), (16, ROWS)):
            select("heap", DESCENDING, "float32", K, isa=isa, begin=begin, end=end, counters=counters, buffer="full")
        whole = counted("heap", DESCENDING, K, isa, buffer="full")
        assert counters.updates == whole.updates
        assert (counters.flushes, counters.examined) == (whole.flushes, whole.examined)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"method": "stack"}, "unknown method stack"),
        ({"value_type": "float8"}, "unknown type of values float8"),
        ({"value_type": "float64"}, "not of the type"),
        ({"isa": "mmx"}, "cannot run mmx"),
        ({"buffer": "half"}, "unknown buffer half"),
        ({"colour": 3}, "unknown option colour"),
        ({"begin": 2, "end": 1}, r"rows \[2, 1\): expected 0 <= begin <= end <= 4"),
        ({"end": 5}, r"rows \[0, 5\): expected 0 <= begin <= end <= 4"),
        ({"k": 0}, "k=0: expected 1 to 7"),
        ({"k": 8}, "k=8: expected 1 to 7"),
        ({"lengths": np.zeros(3, np.int64)}, r"lengths has shape \(3,\), expected \(4,\)"),
        ({"lengths": np.array([7, 0, 8, 1])}, "lengths has 8 at place 2, expected 0 to 7"),
        ({"lengths": np.array([7, 0, 1, -1])}, "lengths has -1 at place 3, expected 0 to 7"),
        ({"values": np.zeros((4, 14), np.float32)[:, ::2]}, "not contiguous"),
        ({"buffer_size": 0}, "buffer_size=0: expected at least 1"),
        ({"m": 2**40}, "m=1099511627776: expected 1 to 2147483648"),
        ({"m": 12}, "m=12: expected a power of two"),
        ({"group": 1}, "group=1: expected 2 to 2147483648"),
        ({"group": -4}, "group=-4: expected 2 to 2147483648"),
        ({"levels": -1}, "levels=-1: expected at least 0"),
        ({"samples": -1}, "samples=-1: expected at least 0"),
        ({"batch": 0}, "batch=0: expected 1 to 2147483648"),
        ({"bits": 0}, "bits=0: expected 1 to 11"),
        ({"bits": 12}, "bits=12: expected 1 to 11"),
    ],
)
def test_refusals(changed: dict[str, Any], words: str) -> None:
    arguments = {"method": "heap", "values": np.zeros((4, 7), np.float32), "value_type": "float32", "k": 3} | changed
    with pytest.raises(ValueError, match=words):
        select(**arguments)
