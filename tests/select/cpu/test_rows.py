"""Row-at-a-time methods of the compiled module, with every instruction set: answers to the last bit, and counters."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tonari.core import _native

Array = npt.NDArray[Any]

ISAS = [isa for isa in _native.supported_isas() if isa != "amx"]
STORED = {
    "float32": np.float32,
    "float16": np.float16,
    "bfloat16": np.uint16,
    "float64": np.float64,
    "int32": np.int32,
    "uint8": np.uint8,
}
LAST = {"float32": np.inf, "float16": np.inf, "bfloat16": 0x7F80, "float64": np.inf, "int32": 2**31 - 1, "uint8": 255}
FIRST = {"float32": -np.inf, "float16": -np.inf, "bfloat16": 0xFF80, "float64": -np.inf, "int32": -(2**31), "uint8": 0}

VARIANTS: list[tuple[str, dict[str, Any]]] = [
    ("hierarchical", {"group": 4}),
    ("hierarchical", {"group": 2, "levels": 2}),
    ("hierarchical", {"group": 3}),
    ("hierarchical", {"group": 16, "levels": 1}),
    ("hierarchical", {"group": 2500}),
    ("quick", {}),
    ("bitonic", {}),
    ("threshold", {"heap": False}),
    ("threshold", {"heap": False, "samples": 1}),
    ("threshold", {"heap": False, "samples": 300}),
    ("threshold", {"heap": True}),
    ("threshold", {"heap": True, "samples": 100_000, "batch": 3}),
    ("radix", {"bits": 8}),
    ("radix", {"bits": 1}),
    ("radix", {"bits": 11}),
]


def named(variant: tuple[str, dict[str, Any]]) -> str:
    method, options = variant
    return "-".join([method, *(f"{name}={value}" for name, value in options.items())])


def as_bits(array: Array) -> Array:
    """Return a view in which NaNs and signs of zeros can be compared."""
    return array.view(f"u{array.dtype.itemsize}")


def numbers(values: Array) -> Array:
    """Return values as float64; uint16 contains the bits of bfloat16."""
    if values.dtype == np.uint16:
        return (values.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    with np.errstate(invalid="ignore"):  # a warning that some processors raise for signalling NaNs
        return values.astype(np.float64)


def stored(array: Array, dtype: str) -> Array:
    """Make numbers around 0 as `dtype`, clipped to its range."""
    if dtype == "bfloat16":
        return (array.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    if dtype in ("int32", "uint8"):
        info = np.iinfo(dtype)
        centre = 0 if dtype == "int32" else 128
        whole = np.rint(np.nan_to_num(array, nan=0, posinf=1e9, neginf=-1e9) * 40).clip(
            info.min - centre, info.max - centre
        )
        return (whole + centre).astype(dtype)
    with np.errstate(over="ignore"):
        return array.astype(dtype)


def select(
    isa: str,
    method: str,
    values: Array,
    dtype: str,
    k: int,
    *,
    largest: bool = False,
    ordered: bool = True,
    lengths: Array | None = None,
    options: dict[str, Any] | None = None,
    counters: _native.SelectCounters | None = None,
    rows: tuple[int, int] | None = None,
) -> tuple[Array, Array, int]:
    begin, end = rows or (0, len(values))
    found = np.full((len(values), k), 77, values.dtype)
    indices = np.full((len(values), k), -77, np.int32)
    stored_as = values.view(np.int16) if values.dtype == np.float16 else values
    written_as = found.view(np.int16) if values.dtype == np.float16 else found
    nan_row = _native.select_rows(
        isa,
        method,
        stored_as,
        dtype,
        begin,
        end,
        k,
        lengths=lengths,
        largest=largest,
        sorted=ordered,
        options=options or {},
        out_values=written_as,
        out_indices=indices,
        counters=counters,
    )
    return found, indices, nan_row


def expected_order(values: Array, largest: bool) -> Array:
    """Return the columns of each row in order of (value, column), NaN last."""
    real = numbers(values)
    absent = np.isnan(real)
    real = np.where(absent, 0, -real if largest else real)
    return np.lexsort((real, absent), axis=1)


def check(
    values: Array,
    dtype: str,
    k: int,
    found: Array,
    indices: Array,
    order: Array,
    *,
    largest: bool = False,
    lengths: Array | None = None,
) -> None:
    for row in range(len(values)):
        length = values.shape[1] if lengths is None else int(lengths[row])
        columns = order[row][order[row] < length][:k]
        np.testing.assert_array_equal(indices[row, : len(columns)], columns)
        np.testing.assert_array_equal(as_bits(found[row, : len(columns)]), as_bits(values[row, columns]))
        assert (indices[row, len(columns) :] == -1).all()
        missing = np.full(k - len(columns), (FIRST if largest else LAST)[dtype], found.dtype)
        np.testing.assert_array_equal(as_bits(found[row, len(columns) :]), as_bits(missing))


KINDS = (
    "random",
    "sorted",
    "reversed",
    "equal",
    "two-valued",
    "leading bits equal",
    "infinities",
    "NaN",
    "zeros of both signs",
    "few small ones",
)


@functools.cache
def table(kind: str, n: int, dtype: str) -> tuple[Array, Array, Array]:
    """Make two rows of values, every other column of a wider table, and both orders of their columns."""
    rng = np.random.default_rng([n, KINDS.index(kind)])
    array = rng.standard_normal((2, n))
    if kind == "sorted":
        array.sort(axis=1)
    elif kind == "reversed":
        array = np.sort(array, axis=1)[:, ::-1]
    elif kind == "equal":
        array[:] = 1.5
    elif kind == "two-valued":
        array = np.where(array < 0.3, -1.0, 1.0)
    elif kind == "leading bits equal":
        array = 1 + np.abs(array) / 64
    elif kind == "infinities":
        array[rng.random((2, n)) < 0.3] = np.inf
        array[rng.random((2, n)) < 0.1] = -np.inf
    elif kind == "NaN":
        array[1, rng.random(n) < 0.5] = np.nan
        array[1, rng.random(n) < 0.2] *= -1  # NaN of both signs
        array[1, n // 2] = np.nan
    elif kind == "zeros of both signs":
        array = np.where(rng.random((2, n)) < 0.5, 0.0, -0.0)
        array[rng.random((2, n)) < 0.1] = -1
    elif kind == "few small ones":
        array = np.abs(array) + 1
        array[0, -3:] = [0.3, 0.1, 0.2]
        array[1, :3] = 0.25
    values = stored(array, dtype)
    return values, expected_order(values, False), expected_order(values, True)


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("dtype", STORED)
@pytest.mark.parametrize("variant", VARIANTS, ids=named)
def test_every_order_of_values(variant: tuple[str, dict[str, Any]], dtype: str, isa: str) -> None:
    method, options = variant
    for kind in KINDS:
        for n, all_k in ((1000, (1, 7, 100, 999)), (4097, (33, 1000))):
            values, ascending, descending = table(kind, n, dtype)
            for k in all_k:
                for largest in (False, True):
                    found, indices, nan_row = select(isa, method, values, dtype, k, largest=largest, options=options)
                    order = descending if largest else ascending
                    check(values, dtype, k, found, indices, order, largest=largest)
                    assert nan_row == (1 if kind == "NaN" and "float" in dtype else -1)


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("dtype", STORED)
@pytest.mark.parametrize("variant", VARIANTS, ids=named)
def test_sizes_around_blocks(variant: tuple[str, dict[str, Any]], dtype: str, isa: str) -> None:
    method, options = variant
    for n in (1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 63, 64, 65, 127, 255, 256, 257, 511, 513, 2049, 4095, 4096):
        values, order, _ = table("random", n, dtype)
        for k in sorted({1, 2, 5, 64, n // 2, n - 1, n} & set(range(1, n + 1))):
            found, indices, _ = select(isa, method, values, dtype, k, options=options)
            check(values, dtype, k, found, indices, order)


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("variant", VARIANTS, ids=named)
def test_long_rows(variant: tuple[str, dict[str, Any]], isa: str) -> None:
    method, options = variant
    for kind in ("random", "reversed", "equal", "two-valued"):
        values, order, _ = table(kind, 70_001, "float32")
        for k in (1, 10, 300, 5000):
            found, indices, _ = select(isa, method, values, "float32", k, options=options)
            check(values, "float32", k, found, indices, order)


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("dtype", STORED)
@pytest.mark.parametrize("variant", VARIANTS, ids=named)
def test_lengths_strides_and_row_ranges(variant: tuple[str, dict[str, Any]], dtype: str, isa: str) -> None:
    method, options = variant
    rng = np.random.default_rng(5)
    wide = stored(rng.standard_normal((12, 2600)), dtype)
    values = wide[:, 3:2503]  # rows are not contiguous, and do not start at a cache line
    lengths = np.array([2500, 0, 1, 63, 64, 65, 700, 2499, 39, 40, 41, 1111])
    for k, largest in ((40, False), (40, True), (1200, False)):
        order = expected_order(values, largest)
        found, indices, nan_row = select(
            isa, method, values, dtype, k, largest=largest, lengths=lengths, options=options, rows=(0, 12)
        )
        check(values, dtype, k, found, indices, order, largest=largest, lengths=lengths)
        assert nan_row == -1
    found, indices, _ = select(isa, method, values, dtype, 9, options=options, rows=(4, 7))
    order = expected_order(values[4:7], False)
    check(values[4:7], dtype, 9, found[4:7], indices[4:7], order)
    outside = np.r_[0:4, 7:12]
    assert (indices[outside] == -77).all()  # rows that were not requested are not written


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("dtype", STORED)
def test_short_rows_side_by_side(dtype: str, isa: str) -> None:
    """Rows that share a register, with and without gaps between them, of full and of other lengths."""
    rng = np.random.default_rng(6)
    for rows, n in ((4, 1), (5, 2), (33, 7), (17, 8), (16, 9), (37, 20), (40, 33), (31, 100), (20, 512)):
        wide = rng.integers(-9, 9, (rows, n + 5)) / 8  # many ties
        wide[rng.random(wide.shape) < 0.1] = -0.0
        lengths = rng.integers(0, n + 1, rows)
        for values in (stored(wide, dtype)[:, 2 : 2 + n], stored(wide[:, :n], dtype).copy()):
            for k, largest, given in (
                (1, False, None),
                (min(n, 5), True, lengths),
                (n, False, lengths),
                (n, True, None),
            ):
                found, indices, nan_row = select(isa, "bitonic", values, dtype, k, largest=largest, lengths=given)
                order = expected_order(values, largest)
                check(values, dtype, k, found, indices, order, largest=largest, lengths=given)
                assert nan_row == -1
        if "float" in dtype and rows > 6:
            values = stored(np.where(np.arange(n) == n - 1, np.nan, wide[:, :n]), dtype)
            values[:5] = stored(wide[:5, :n], dtype)
            for given, first in ((None, 5), (np.where(np.arange(rows) < 7, n - 1, n), 7)):
                found, indices, nan_row = select(isa, "bitonic", values, dtype, n, lengths=given)
                check(values, dtype, n, found, indices, expected_order(values, False), lengths=given)
                assert nan_row == first
            found, indices, nan_row = select(isa, "bitonic", values, dtype, n, rows=(6, rows))
            check(values[6:], dtype, n, found[6:], indices[6:], expected_order(values[6:], False))
            assert nan_row == 6
            assert (indices[:6] == -77).all()


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("variant", VARIANTS, ids=named)
def test_any_order_is_the_same_set(variant: tuple[str, dict[str, Any]], isa: str) -> None:
    method, options = variant
    for kind in ("random", "two-valued", "NaN"):
        values, order, _ = table(kind, 4097, "float32")
        for k in (1, 50, 2000, 4097):
            found, indices, _ = select(isa, method, values, "float32", k, ordered=False, options=options)
            taken = np.take_along_axis(values, indices, axis=1)
            np.testing.assert_array_equal(as_bits(found), as_bits(taken))
            np.testing.assert_array_equal(np.sort(indices, axis=1), np.sort(order[:, :k], axis=1))


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("variant", VARIANTS, ids=named)
def test_first_row_with_nan(variant: tuple[str, dict[str, Any]], isa: str) -> None:
    method, options = variant
    rng = np.random.default_rng(1)
    for dtype in ("float32", "float16", "bfloat16", "float64"):
        values = stored(rng.standard_normal((6, 3000)), dtype)
        absent = stored(np.array([np.nan]), dtype)[0]
        for column in (0, 1499, 2999):
            marked = values.copy()
            marked[4, column] = marked[2, column] = absent
            assert select(isa, method, marked, dtype, 20, options=options)[2] == 2
            assert select(isa, method, marked, dtype, 20, largest=True, options=options)[2] == 2
            assert select(isa, method, marked, dtype, 20, options=options, rows=(3, 6))[2] == 4
            lengths = np.full(6, column)  # values beyond a row's length are ignored
            assert select(isa, method, marked, dtype, 20, lengths=lengths, options=options)[2] == -1


@pytest.mark.parametrize("isa", ISAS)
def test_whole_numbers_at_the_ends_of_their_range(isa: str) -> None:
    rng = np.random.default_rng(2)
    ends = np.array([-(2**31), -(2**31) + 1, -1, 0, 1, 2**31 - 2, 2**31 - 1], np.int32)
    for choice in (ends, ends[:1], ends[-1:], ends[[0, -1]]):
        values = rng.choice(choice, (3, 5000))
        for largest in (False, True):
            order = expected_order(values, largest)
            for method, options in VARIANTS:
                found, indices, _ = select(isa, method, values, "int32", 600, largest=largest, options=options)
                check(values, "int32", 600, found, indices, order, largest=largest)


@pytest.mark.parametrize("heap", [False, True])
def test_samples_of_any_number(heap: bool) -> None:
    """If lines of samples would overlap, the whole row is the sample: no value may count twice."""
    values, order, _ = table("random", 1000, "float32")
    for samples in (1, 2, 15, 16, 17, 100, 499, 900, 940, 976, 984, 990, 999, 1000, 1001):
        for k in {1, 7, samples // 2, samples - 1, samples} & set(range(1, 1001)):
            for isa in ISAS:
                options = {"heap": heap, "samples": samples}
                found, indices, _ = select(isa, "threshold", values, "float32", k, options=options)
                check(values, "float32", k, found, indices, order)


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("largest", [False, True])
def test_threshold_that_was_too_low(largest: bool, isa: str) -> None:
    """The smallest value is the only small one and is sampled, so fewer than k values are below the threshold."""
    n, k, sampled = 65_536, 2, []
    values = np.random.default_rng(9).random((40, n), np.float32) + 1
    for row in range(len(values)):
        part = row % 32  # of 32, with 16 samples each
        sampled.append(part * n // 32 + scattered(row * 32 + part, n // 32 - 16 + 1) + 5)
        values[row, [0, 40, n - 1]] = np.array([0xFFC00000], np.uint32).view(np.float32)  # NaN that is not counted
    values[np.arange(40), sampled] = 0
    if largest:
        values = np.where(np.isnan(values), values, -values)
    found, indices, nan_row = select(isa, "threshold", values, "float32", k, largest=largest, options={"heap": False})
    np.testing.assert_array_equal(indices[:, 0], sampled)
    check(values, "float32", k, found, indices, expected_order(values, largest), largest=largest)
    assert nan_row == 0


def test_all_float16() -> None:
    """Every bit pattern in one row: infinities, both zeros, all NaNs and subnormal numbers."""
    values = np.random.default_rng(3).permutation(np.arange(2**16, dtype=np.uint16)).view(np.float16)[None]
    for isa in ISAS:
        for method, options in VARIANTS:
            for largest in (False, True):
                found, indices, nan_row = select(
                    isa, method, values, "float16", 2**16, largest=largest, options=options
                )
                order = expected_order(values, largest)
                check(values, "float16", 2**16, found, indices, order, largest=largest)
                assert nan_row == 0


# Counters


def counted(method: str, values: Array, k: int, isa: str = ISAS[-1], **options: Any) -> _native.SelectCounters:
    counters = _native.SelectCounters()
    select(isa, method, values, "float32", k, options=options, counters=counters)
    return counters


def scattered(seed: int, range_: int) -> int:
    bits = (seed + 1) * 0x9E3779B97F4A7C15 % 2**64
    bits = (bits ^ bits >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    bits = (bits ^ bits >> 27) * 0x94D049BB133111EB % 2**64
    return (bits >> 32) * range_ >> 32


def quick_examined(row: int, values: list[float], k: int) -> int:
    """Count komarov2014 on lists, with the pivots of the compiled method."""
    part, wanted, examined, step = [(value, column) for column, value in enumerate(values)], k, 0, 0
    while len(part) > max(64, wanted + wanted // 2):
        if examined + len(part) > 4 * len(values):
            break
        count, seed = len(part), row + step
        edges = [j * count // 64 for j in range(65)]
        places = [edges[j] + scattered(seed * 64 + j, edges[j + 1] - edges[j]) for j in range(64)]
        part_wanted = wanted / count
        mean = 64 * part_wanted
        pivot = sorted(part[place] for place in places)[
            min(int(mean + 2 * math.sqrt(mean * (1 - part_wanted)) + 1.5), 64) - 1
        ]
        examined += count
        left = [entry for entry in part if entry <= pivot]
        if len(left) > wanted:
            part = left
        else:
            part = [entry for entry in part if entry > pivot]
            wanted -= len(left)
        step += 1
    return examined


@pytest.mark.parametrize("isa", ISAS)
def test_quick_partitions_as_the_paper_does(isa: str) -> None:
    for kind in ("random", "sorted", "equal", "two-valued", "leading bits equal"):
        for n in (64, 65, 1000, 4097):
            values, _, _ = table(kind, n, "float32")
            for k in (1, 10, 50, n // 2, n - 1, n):
                expected = sum(quick_examined(row, values[row].tolist(), k) for row in range(2))
                assert counted("quick", values, min(k, n), isa).examined == expected, (kind, n, k)


def against_quick(n: int, k: int, passes: int) -> Array:
    """Make a row whose sampled places have its smallest values in every pass, so that hardly any go left."""
    values = np.zeros(n, np.float32)
    left, smallest = list(range(n)), 1
    for step in range(passes):
        count = len(left)
        edges = [j * count // 64 for j in range(65)]
        for j in range(64):
            column = left[edges[j] + scattered(step * 64 + j, edges[j + 1] - edges[j])]
            if values[column] == 0:
                values[column], smallest = smallest, smallest + 1
        mean = 64 * k / count
        gone = int(mean + 2 * math.sqrt(mean * (1 - k / count)) + 1.5)
        taken = set(sorted((c for c in left if values[c] > 0), key=lambda c: values[c])[:gone])
        left, k = [c for c in left if c not in taken], k - gone
    free = values == 0
    values[free] = smallest + np.random.default_rng(8).permutation(n)[: free.sum()]
    return values[None]


@pytest.mark.parametrize("isa", ISAS)
def test_quick_on_values_made_against_it(isa: str) -> None:
    n, k = 20_000, 1000
    values = against_quick(n, k, 6)
    counters = _native.SelectCounters()
    found, indices, _ = select(isa, "quick", values, "float32", k, counters=counters)
    check(values, "float32", k, found, indices, expected_order(values, False))
    assert 3 * n < counters.examined <= 4 * n  # four reads, and the rest is halved by keys


def test_quick_reads_little_more_than_the_row() -> None:
    values = np.random.default_rng(4).random((60, 1 << 15), np.float32)
    for k in (10, 64, 1000):
        assert values.size <= counted("quick", values, k).examined < 1.15 * values.size


def hierarchical_examined(values: Array, k: int, group: int, levels: int) -> int:
    """Count entries of the top list and members of chosen groups (tang2015, algorithm 4, top-down)."""
    lists = [list(values)]
    while len(lists[-1]) > k and (levels == 0 or len(lists) <= levels):
        below = lists[-1]
        lists.append([min(below[first : first + group]) for first in range(0, len(below), group)])
    offered = list(range(len(lists[-1])))
    examined = len(offered)
    for level in range(len(lists) - 1, 0, -1):
        chosen = sorted((lists[level][i], i) for i in offered)[:k]
        offered = [m for _, i in chosen for m in range(i * group, min((i + 1) * group, len(lists[level - 1])))]
        examined += len(offered)
    return examined


@pytest.mark.parametrize("isa", ISAS)
def test_hierarchical_examines_the_top_list_and_members(isa: str) -> None:
    for kind in ("random", "equal"):
        values, _, _ = table(kind, 1000, "float32")
        for k, group, levels in ((1, 2, 0), (7, 4, 0), (7, 4, 1), (100, 3, 2), (999, 16, 0), (1000, 4, 0), (5, 300, 0)):
            expected = sum(hierarchical_examined(row, k, group, levels) for row in values)
            counters = counted("hierarchical", values, k, isa, group=group, levels=levels)
            assert counters.examined == expected, (kind, k, group, levels)
            assert counters.lanes == 1


def radix_examined(row: Array, k: int, bits: int) -> int:
    """Count the keys whose digits were counted."""
    raw = row.view(np.int32).astype(np.int64)
    keys = [int(key) + 2**31 for key in np.where(raw < 0, -(raw & 0x7FFFFFFF), raw)]
    rest = max(key ^ keys[0] for key in keys).bit_length()
    examined = 0
    while rest > 0 and len(keys) > k:
        examined += len(keys)
        rest = max(rest - bits, 0)
        digit = sorted(key >> rest for key in keys)[k - 1]
        k -= sum(key >> rest < digit for key in keys)
        keys = [key for key in keys if key >> rest == digit]
    return examined


@pytest.mark.parametrize("isa", ISAS)
def test_radix_examines_what_shares_the_digits_so_far(isa: str) -> None:
    for kind in ("random", "equal", "two-valued", "leading bits equal"):
        values, _, _ = table(kind, 1000, "float32")
        for k in (1, 30, 999, 1000):
            for bits in (1, 4, 8, 11):
                expected = sum(radix_examined(row, k, bits) for row in values)
                assert counted("radix", values, k, isa, bits=bits).examined == expected, (kind, k, bits)


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("heap", [False, True])
def test_threshold_ratios_from_all_values(isa: str, heap: bool) -> None:
    values = np.random.default_rng(6).random((40, 1000), np.float32) + 1
    for k in (1, 25, 500, 1000):
        # If the sample is the whole row, the threshold is the k-th smallest value, and k values remain.
        counters = counted("threshold", values, k, isa, heap=heap, samples=1000, batch=16)
        assert counters.examined == values.size
        assert (counters.batches, counters.rows) == (3, 40)
        assert counters.compression == pytest.approx(3 * 1000 / k)
        assert counters.threshold_ratio == 40


@pytest.mark.parametrize("heap", [False, True])
def test_threshold_ratios_by_batches(heap: bool) -> None:
    rng = np.random.default_rng(7)
    values = rng.random((30, 5000), np.float32) + 1
    k, batch = 20, 8
    kth = np.sort(values, axis=1)[:, k - 1].astype(np.float64)
    left, ratios = [], []
    for row in range(30):
        alone = _native.SelectCounters()
        select(
            ISAS[-1],
            "threshold",
            values,
            "float32",
            k,
            options={"heap": heap, "samples": 400, "batch": 1},
            counters=alone,
            rows=(row, row + 1),
        )
        assert (alone.batches, alone.rows) == (1, 1)
        ratios.append(alone.threshold_ratio)
        threshold = np.float32(kth[row] / alone.threshold_ratio)
        left.append(int((values[row] <= threshold).sum()))
        assert alone.compression == pytest.approx(5000 / left[-1])  # equation 4
    together = counted("threshold", values, k, heap=heap, samples=400, batch=batch)
    assert together.threshold_ratio == pytest.approx(sum(ratios))
    most = [max(left[first : first + batch]) for first in range(0, 30, batch)]
    assert together.compression == pytest.approx(sum(5000 / count for count in most))
    # The paper expects n_S / k; the other finish aims lower, at k values and three standard deviations.
    mean = together.compression / together.batches
    assert 400 / k / 2 < mean < 400 / k if heap else mean > 400 / k
    assert min(left) >= k


def test_counters_are_those_of_every_instruction_set() -> None:
    values, _, _ = table("random", 4097, "float32")
    for method, options in VARIANTS:
        seen = {
            (counters.examined, counters.compression, counters.threshold_ratio)
            for counters in (counted(method, values, 60, isa, **options) for isa in ISAS)
        }
        assert len(seen) == 1, (method, options)
