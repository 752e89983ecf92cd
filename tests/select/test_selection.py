"""select_k: every method, with every option and dtype, equals a stable sort to the last bit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tonari
from tests.helpers import select_checks
from tests.helpers.devices import HAS_TORCH, needs_torch, on_gpu
from tests.helpers.select_checks import (
    CPU_VARIANTS,
    DTYPES,
    FLOATS,
    GPU_VARIANTS,
    MAKERS,
    assert_same,
    assert_selection,
    make,
    some_lengths,
    variants,
)
from tests.helpers.select_reference import select_k_reference
from tonari.core import _native
from tonari.select import Counters, Selection
from tonari.select.registry import METHODS

Array = npt.NDArray[Any]

ISAS = [isa for isa in _native.supported_isas() if isa != "amx"]  # which has no more instructions for this than AVX-512

# rows, n, k: remaining lanes, n = 1, k = n, several groups of rows, rows longer than any chunk of a kernel.
SHAPES = [(1, 1, 1), (15, 7, 7), (16, 33, 32), (17, 100, 3), (33, 257, 64), (2, 1500, 100), (5, 2049, 1)]


def skip_without_torch(dtype: str) -> None:
    if dtype == "bfloat16" and not HAS_TORCH:
        pytest.skip("torch is not installed")


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("method", "options"), variants(CPU_VARIANTS))
def test_matrix(method: str, options: dict[str, Any], dtype: str, isa: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """All values with some shapes, all shapes with some values; each with other flags."""
    skip_without_torch(dtype)
    monkeypatch.setenv("TONARI_ISA", isa)
    # Each variant has its own shapes and flags.
    offset = sum(map(ord, f"{method}{options}{dtype}"))
    for at, maker in enumerate(MAKERS):
        rows, n, k = SHAPES[(at + offset) % len(SHAPES)]
        flags = at + offset // len(SHAPES)
        arguments: dict[str, Any] = {
            "largest": bool(flags & 1),
            "lengths": some_lengths(rows, n, at) if flags % 3 == 0 else None,
        }
        ordered = flags % 4 != 3
        values = make(maker, rows, n, dtype, seed=at)
        found = tonari.select_k(values, k, method=method, sorted=ordered, **options, **arguments)
        assert_selection(found, values, k, sorted=ordered, **arguments)


@pytest.mark.parametrize("dtype", ["float32", "float64", "uint8"])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("rows", [0, 1, 15, 16, 17, 33])
def test_rows_that_do_not_fill_lanes(rows: int, method: str, dtype: str) -> None:
    values = make("random", rows, 70, dtype)
    for k in (1, 20, 70):
        assert_selection(tonari.select_k(values, k, method=method), values, k)


@pytest.mark.parametrize("maker", ["random", "descending", "equal", "two_valued", "leading_bits", "organ_pipe"])
@pytest.mark.parametrize("method", METHODS)
def test_long_rows(method: str, maker: str) -> None:
    """Longer than buffers, samples and caches, and k beyond what fits into registers."""
    values = make(maker, 3, 60_000, "float32")
    for k in (10, 700) if method == "insertion" else (10, 3000):
        assert_selection(tonari.select_k(values, k, method=method), values, k)
        assert_selection(tonari.select_k(values, k, method=method, largest=True), values, k, largest=True)


@pytest.mark.parametrize("method", METHODS)
def test_k_of_n_sorts(method: str) -> None:
    values = make("zeros", 4, 2500, "float32")
    assert_selection(tonari.select_k(values, 2500, method=method), values, 2500)


@pytest.mark.parametrize("finish", ["heap", "halving"])
def test_samples_that_nearly_fill_a_row(finish: str) -> None:
    """A sample taken in lines has no room for another line here, and must count no value twice."""
    for n, k, samples in [*((n, 3, None) for n in range(23, 34)), *((n, 25, 50) for n in range(50, 67))]:
        values = make("random", 64, n, "float32")
        found = tonari.select_k(values, k, method="threshold", finish=finish, samples=samples)
        assert_selection(found, values, k)


@settings(max_examples=120, deadline=None)
@given(st.data())
def test_small_rows_with_many_ties(data: st.DataObject) -> None:
    rows, n = data.draw(st.integers(0, 20), "rows"), data.draw(st.integers(1, 40), "n")
    k = data.draw(st.integers(1, n), "k")
    dtype = data.draw(st.sampled_from([dtype for dtype in DTYPES if dtype != "bfloat16"]), "dtype")
    method, options = data.draw(st.sampled_from([(m, o) for m, all_o in CPU_VARIANTS.items() for o in all_o]), "method")
    numbers = data.draw(st.lists(st.sampled_from([0, 1, 2, 3, 200]), min_size=rows * n, max_size=rows * n), "values")
    values = np.array(numbers, np.float64).reshape(rows, n).astype(dtype)
    if dtype in FLOATS:  # 200 stands for values that only floats have
        strange = data.draw(st.sampled_from([-0.0, np.nan, np.inf, -np.inf]), "strange")
        values[values == 200] = strange
    arguments: dict[str, Any] = {
        "largest": data.draw(st.booleans(), "largest"),
        "nan": "last",
        "lengths": data.draw(
            st.none() | st.lists(st.integers(0, n), min_size=rows, max_size=rows).map(lambda x: np.array(x, int)),
            "lengths",
        ),
    }
    ordered = data.draw(st.booleans(), "sorted")
    found = tonari.select_k(values, k, method=method, sorted=ordered, **options, **arguments)
    assert_selection(found, values, k, sorted=ordered, **arguments)


# The same numbers in another layout.
LAYOUTS = {
    "read only": lambda x: _read_only(x),
    "every other row": lambda x: np.repeat(x, 2, axis=0)[::2],
    "rows backwards": lambda x: x[::-1].copy()[::-1],
    "columns of a wider matrix": lambda x: np.pad(x, ((0, 0), (3, 5)))[:, 3:-5],
    "every third column": lambda x: np.repeat(x, 3, axis=1)[:, ::3],
    "columns backwards": lambda x: x[:, ::-1].copy()[:, ::-1],
    "Fortran": np.asfortranarray,
    "unaligned": lambda x: np.frombuffer(b"?" + x.tobytes(), np.uint8)[1:].view(x.dtype).reshape(x.shape),
    "other byte order": lambda x: x.astype(x.dtype.newbyteorder()),
    "subclass": lambda x: x.view(type("Subclass", (np.ndarray,), {})),
}


def _read_only(x: Array) -> Array:
    x = x.copy()
    x.flags.writeable = False
    return x


@pytest.mark.parametrize("dtype", ["float32", "float16", "float64", "int32", "uint8"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts(layout: str, dtype: str) -> None:
    plain = make("random", 19, 40, dtype)
    values = LAYOUTS[layout](plain)
    assert (values == plain).all()
    before = values.tobytes()
    for method in ("auto", "heap", "radix"):
        found = tonari.select_k(values, 6, method=method)
        assert_selection(found, plain, 6)
        assert all(type(part) is np.ndarray and part.flags.owndata and part.flags.writeable for part in found)
    assert values.tobytes() == before


def test_one_row_for_all_and_one_column() -> None:
    row = make("random", 1, 30, "float32")
    same = np.broadcast_to(row, (40, 30))
    assert_selection(tonari.select_k(same, 4), same.copy(), 4)
    column = np.repeat(row.T, 9, axis=1)[:, ::9]
    assert column.shape == (30, 1)
    assert_selection(tonari.select_k(column, 1), column.copy(), 1)
    assert_selection(tonari.select_k(column[:1], 1), column[:1].copy(), 1)


def test_memory_map(tmp_path: Path) -> None:
    values = make("random", 20, 50, "float32")
    np.save(tmp_path / "values.npy", values)
    found = tonari.select_k(np.load(tmp_path / "values.npy", mmap_mode="r"), 5)
    assert_selection(found, values, 5)
    assert type(found.values) is np.ndarray


def test_lists_are_float64() -> None:
    found = tonari.select_k([[0.5, 0.25], [1.0, 2.0]], 1)
    assert found.values.dtype == np.float64
    assert (found.values.tolist(), found.indices.tolist()) == ([[0.25], [1.0]], [[1], [0]])


@needs_torch
@pytest.mark.parametrize("dtype", DTYPES)
def test_tensors_in_tensors_out(dtype: str) -> None:
    torch = select_checks.torch
    plain = make("random", 19, 40, dtype)
    tensor = plain if dtype == "bfloat16" else torch.from_numpy(plain)
    lengths = torch.from_numpy(some_lengths(19, 40))
    truth = select_k_reference(tensor, 6, lengths=lengths)
    assert truth.values.dtype == tensor.dtype
    wide = torch.zeros((40, 50), dtype=tensor.dtype)
    wide[1:39:2, 5:45] = tensor
    for same in (tensor, wide[1:39:2, 5:45], tensor.t().contiguous().t(), tensor[:1].expand(19, 40)):
        expected = truth if (same == tensor).all() else select_k_reference(tensor[:1].repeat(19, 1), 6, lengths=lengths)
        assert_same(tonari.select_k(same, 6, lengths=lengths), expected)
    if dtype in FLOATS:
        with torch.no_grad():
            assert_same(tonari.select_k(tensor.clone().requires_grad_(), 6, lengths=lengths.numpy()), truth)


@needs_torch
@pytest.mark.parametrize("maker", ["random", "zeros", "subnormal", "infinities"])
def test_bfloat16_of_ml_dtypes(maker: str) -> None:
    tensor = make(maker, 19, 40, "bfloat16")
    array = tensor.float().numpy().astype(ml_dtypes.bfloat16)
    lengths = some_lengths(19, 40)
    for same in (array, np.repeat(array, 2, axis=0)[::2], np.asfortranarray(array)):
        for method in ("auto", "heap", "radix"):
            found = tonari.select_k(same, 6, method=method, largest=method == "heap", lengths=lengths)
            assert found.values.dtype == ml_dtypes.bfloat16
            assert_same(found, select_k_reference(array, 6, largest=method == "heap", lengths=lengths))
            wanted = tonari.select_k(tensor, 6, method=method, largest=method == "heap", lengths=lengths)
            assert found.values.tobytes() == wanted.values.view(select_checks.torch.int16).numpy().tobytes()
            assert found.indices.tobytes() == wanted.indices.numpy().tobytes()
    array[7, 3] = np.nan
    with pytest.raises(ValueError, match="values: row 7 has NaN in column 3"):
        tonari.select_k(array, 6)


def test_values_come_back_with_their_bits() -> None:
    payload = np.array([[0x7FC12345, 0x3F800000, 0x80000000, 0xFFC54321, 0x00000000]], np.uint32).view(np.float32)
    for method in METHODS:
        found = tonari.select_k(payload, 5, method=method, nan="last")
        assert found.indices.tolist() == [[2, 4, 1, 0, 3]]
        assert found.values.view(np.uint32).tolist() == [[0x80000000, 0, 0x3F800000, 0x7FC12345, 0xFFC54321]]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("method", METHODS)
def test_nan_is_refused_by_row(method: str, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    skip_without_torch(dtype)
    for largest in (False, True):
        values = make("infinities", 50, 21, dtype)
        values[37, 4] = values[44, 0] = float("nan")
        with pytest.raises(ValueError, match=r'^values: row 37 has NaN in column 4; .*pass nan="last"'):
            tonari.select_k(values, 3, method=method, largest=largest, threads=2)
        values[20, 20] = float("nan")
        with pytest.raises(ValueError, match="row 20 has NaN in column 20"):
            tonari.select_k(values, 3, method=method, largest=largest)
        lengths = np.full(50, 21)
        lengths[20], lengths[37] = 20, 4  # values beyond the lengths are ignored
        with pytest.raises(ValueError, match="row 44 has NaN in column 0"):
            tonari.select_k(values, 3, method=method, largest=largest, lengths=lengths)
        lengths[44] = 0
        found = tonari.select_k(values, 3, method=method, largest=largest, lengths=lengths)
        assert_selection(found, values, 3, largest=largest, lengths=lengths)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("method", METHODS)
def test_nan_comes_last(method: str, dtype: str) -> None:
    skip_without_torch(dtype)
    values = make("infinities", 40, 30, dtype)
    which = np.random.default_rng(3).random((40, 30)) < np.linspace(0, 1, 40)[:, None]
    values[select_checks.torch.from_numpy(which) if dtype == "bfloat16" else which] = float("nan")
    for largest in (False, True):
        for lengths in (None, some_lengths(40, 30)):
            arguments: dict[str, Any] = {"largest": largest, "lengths": lengths, "nan": "last"}
            assert_selection(tonari.select_k(values, 20, method=method, **arguments), values, 20, **arguments)


def test_public_names() -> None:
    assert tonari.select_k is tonari.select.select_k
    assert tonari.Selection is Selection
    assert {"select_k", "Selection"} <= set(tonari.__all__)
    assert Counters() == Counters(None)


def _to_cuda(values: Any) -> Any:
    return (select_checks.torch.from_numpy(values) if isinstance(values, np.ndarray) else values).cuda()


def _to_cpu(found: Selection) -> Selection:
    assert found.values.is_cuda
    assert found.indices.is_cuda
    return Selection(*(part.cpu() for part in found))


@on_gpu
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("method", "options"), variants(GPU_VARIANTS))
def test_cuda_matrix(method: str, options: dict[str, Any], dtype: str) -> None:
    for at, maker in enumerate(MAKERS):
        rows, n, k = (33, 257, 20) if at % 2 else (5, 3001, 100)
        arguments: dict[str, Any] = {
            "largest": bool(at % 3 == 0),
            "lengths": some_lengths(rows, n) if at % 4 == 3 else None,
        }
        values = _to_cuda(make(maker, rows, n, dtype, seed=at))
        found = tonari.select_k(values, k, method=method, sorted=at != 5, **options, **arguments)
        assert_selection(_to_cpu(found), values.cpu(), k, sorted=at != 5, **arguments)


@on_gpu
@pytest.mark.parametrize("method", METHODS)
def test_cuda_shapes(method: str) -> None:
    for rows, n, k in ((0, 4, 2), (1, 1, 1), (31, 64, 64), (2, 100_000, 2000 if method != "insertion" else 100)):
        values = make("two_valued", rows, n, "float32")
        found = _to_cpu(tonari.select_k(_to_cuda(values), k, method=method))
        assert_selection(found, select_checks.torch.from_numpy(values), k)


@on_gpu
@pytest.mark.parametrize("method", METHODS)
def test_cuda_layouts_and_nan(method: str) -> None:
    values = _to_cuda(make("random", 40, 60, "float32"))
    wide = select_checks.torch.zeros((80, 90), device="cuda")
    wide[::2, 7:67] = values
    truth = select_k_reference(values.cpu(), 5)
    for same in (wide[::2, 7:67], values.t().contiguous().t()):
        assert_same(_to_cpu(tonari.select_k(same, 5, method=method)), truth)
    values[31, 59] = values[17, 3] = float("nan")
    with pytest.raises(ValueError, match="row 17 has NaN in column 3"):
        tonari.select_k(values, 5, method=method)
    assert_selection(_to_cpu(tonari.select_k(values, 5, method=method, nan="last")), values.cpu(), 5, nan="last")
    lengths = np.full(40, 60)
    lengths[17] = 3
    for given_as in (lengths, select_checks.torch.from_numpy(lengths).cuda()):
        with pytest.raises(ValueError, match="row 31 has NaN in column 59"):
            tonari.select_k(values, 5, method=method, lengths=given_as)


@on_gpu
def test_cuda_takes_no_threads() -> None:
    with pytest.raises(ValueError, match="threads=2: values are on cuda:0"):
        tonari.select_k(_to_cuda(make("random", 2, 3, "float32")), 1, threads=2)
