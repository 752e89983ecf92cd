"""The compiled module: scans, exact values to the last bit, packing, and refusals."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

from tests.helpers import checks
from tests.helpers.checks import DTYPES
from tonari.core import _native
from tonari.inputs import held
from tonari.metrics import METRICS
from tonari.metrics.reference import values_at

Array = npt.NDArray[Any]


def test_the_environment_is_that_of_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TONARI_A", raising=False)
    monkeypatch.setenv("TONARI_B", "ä b")
    assert _native.environment("TONARI_A", "TONARI_B") == (None, "ä b".encode())
    monkeypatch.delenv("TONARI_B")
    monkeypatch.setenv("TONARI_A", "")
    assert _native.environment("TONARI_A", "TONARI_B") == (b"", None)


def test_instruction_sets_and_kernels() -> None:
    isas, names = _native.supported_isas(), _native.kernel_names()
    assert isas == [isa for isa in ("generic", "avx2", "avx512", "amx", "neon") if isa in isas]
    assert isas[0] == "generic"
    assert len(names) == len(set(names))
    for operation in ("inner", *checks.ELEMENTWISE):
        assert f"{operation}/float32/generic" in names
    assert {name.split("/")[2] for name in names} == set(isas)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float64"])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("d", [1, 7, 8, 33])
def test_first_row_that_is_not_finite(dtype: str, value: float, d: int) -> None:
    given = checks.gaussian(9, d).astype(dtype)
    rows = held(given)
    assert _native.first_nonfinite_row(rows) == -1
    given[7, 0] = value
    given[5, d - 1] = value
    assert _native.first_nonfinite_row(rows) == 5
    assert _native.first_nonfinite_row(rows, 6) == 7
    assert _native.first_nonfinite_row(rows, 6, 7) == -1
    assert _native.first_nonfinite_row(rows, 0, 6) == 5


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float64"])
@pytest.mark.parametrize("d", [1, 3, 1023, 1025])
def test_rows_that_are_not_finite_among_many(dtype: str, d: int) -> None:
    # Short rows are scanned several at a time.
    given = np.zeros((3_000 // d + 5, d)).astype(dtype)
    n = len(given)
    for at in {0, 1, n // 2, n - 1}:
        given[at, d // 2] = np.nan
        assert _native.first_nonfinite_row(held(given)) == at
        assert _native.first_nonfinite_row(held(given), at + 1) == -1
        assert _native.first_nonfinite_row(held(given), 0, at) == -1
        given[at] = 0


def test_largest_finite_values_are_finite() -> None:
    for dtype in ("float32", "float16", "bfloat16", "float64"):
        rows = np.full((3, 40), ml_dtypes.finfo(dtype).max, dtype)
        rows[1] *= -1
        assert _native.first_nonfinite_row(held(rows)) == -1
    for dtype in ("uint8", "int8"):
        assert _native.first_nonfinite_row(np.full((2, 3), np.iinfo(dtype).max, dtype)) == -1


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float64", "int8"])
def test_first_row_with_a_negative_value(dtype: str) -> None:
    given = np.ones((6, 11), dtype)
    rows = held(given)
    given[0] = 0
    if dtype != "int8":
        given[1] = -0.0  # zero is not negative, whatever its sign
    assert _native.first_negative_row(rows) == -1
    given[4, 10] = -1
    assert _native.first_negative_row(rows) == 4
    assert _native.first_negative_row(rows, 0, 4) == -1
    assert _native.first_negative_row(np.full((2, 2), 255, np.uint8)) == -1


@pytest.mark.parametrize("dtype", DTYPES)
def test_column_means_and_largest_magnitude(dtype: str) -> None:
    given = np.abs(checks.gaussian(31, 9) * 20).astype(dtype)
    rows = held(given)
    for step in (1, 4):
        picked = given[::step].astype(np.float64)
        np.testing.assert_allclose(_native.column_means(rows, step), picked.mean(axis=0), rtol=1e-14)
        for centre in (picked.mean(axis=0), picked.min(axis=0) - 5, picked.max(axis=0) + 5):
            assert _native.largest_magnitude(rows, centre.tolist(), step) == np.abs(picked - centre).max()


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("query_dtype", DTYPES)
@pytest.mark.parametrize("point_dtype", DTYPES)
def test_exact_values_to_the_last_bit(metric: str, query_dtype: str, point_dtype: str) -> None:
    rng = np.random.default_rng(0)
    for d in (1, 3, 8, 15, 16, 17, 31, 32, 47, 130):
        queries = np.abs(rng.normal(0, 30, (4, d))).astype(query_dtype)
        points = np.abs(rng.normal(0, 30, (9, d))).astype(point_dtype)
        points[8] = 0
        ids = rng.integers(0, 9, (4, 6))
        values = np.full((4, 6), np.nan)
        _native.exact_values(metric, held(queries), held(points), ids, values)
        expected = values_at(queries, points, ids, metric)
        assert values.tobytes() == expected.tobytes(), f"d={d}"


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_exact_values_of_all_halves(dtype: str) -> None:
    bits = np.arange(2**16, dtype=np.uint16).view(dtype)
    with np.errstate(invalid="ignore"):  # ml_dtypes has NaN
        points = bits[np.isfinite(bits)][:, None]
    values = np.empty((1, len(points)))
    _native.exact_values("l1", np.zeros((1, 1), np.float32), held(points), np.arange(len(points))[None], values)
    np.testing.assert_array_equal(values[0], np.abs(points[:, 0].astype(np.float64)))


@pytest.mark.parametrize("kernel", _native.kernel_names())
def test_packed_points_count_and_weigh(kernel: str) -> None:
    operation, precision, _ = kernel.split("/")
    metric = "euclidean" if operation == "inner" else operation
    size = {"int8": 1, "bfloat16": 2, "float32": 4}[precision]
    form = _native.Form(metric, [0.0] * 40, 1.0)
    points = np.abs(checks.gaussian(300, 40))
    packed = _native.PackedPoints(kernel, form, points, 100, 300)
    assert packed.count == 200
    per_group = -(-200 // packed.groups)
    assert packed.groups * per_group >= 200
    assert 1 <= per_group <= 96
    assert 200 * 40 * size <= packed.nbytes <= (packed.groups * per_group + 64) * (64 * size + 32)


def test_the_unit_is_measured() -> None:
    for name in _native.kernel_names():
        assert 1e8 < _native.peak_rate(name, 0.002) < 1e14


def test_products_of_bytes_have_a_higher_ceiling_than_those_of_floats() -> None:
    """vpdpbusd does four times as many operations as a multiply-add, and the three instructions of AVX2 twice as
    many.
    """
    for isa, least in (("avx2", 1.1), ("avx512", 2.0)):
        names = [f"inner/{precision}/{isa}" for precision in ("int8", "float32")]
        if set(names) <= set(_native.kernel_names()):
            # Many bursts are shorter than a time slice of the scheduler, so some are undisturbed.
            rates = np.array([[_native.peak_rate(name, 2e-4) for name in names] for _ in range(100)])
            of_bytes, of_floats = rates.max(axis=0)
            assert of_bytes > least * of_floats, isa


def test_the_lock_is_given_up_in_one_way_alone() -> None:
    """Only that way is safe for a daemon thread that returns while the interpreter exits (bind/unlocked.hpp)."""
    sources = sorted((Path(__file__).parents[2] / "native").rglob("*.[ch]pp"))
    others = ("gil_scoped_release", "PyEval_RestoreThread", "Py_END_ALLOW_THREADS")
    assert sources
    found = [path.name for path in sources if any(other in path.read_text(encoding="utf-8") for other in others)]
    assert found == ["unlocked.hpp"]


def test_unknown_names_are_refused() -> None:
    form = _native.Form("euclidean", [0.0] * 4, 1.0)
    points = checks.gaussian(5, 4)
    with pytest.raises(ValueError, match="no kernel inner/float8/generic on this machine"):
        _native.PackedPoints("inner/float8/generic", form, points, 0, 5)
    with pytest.raises(ValueError, match="no kernel nothing on this machine"):
        _native.peak_rate("nothing")
    with pytest.raises(ValueError, match="unknown metric hamming"):
        _native.Form("hamming", [0.0], 1.0)
    with pytest.raises(TypeError):
        _native.first_nonfinite_row(np.zeros((2, 2), np.int32))
    for other in ("V2", [("bfloat16", "V2"), ("b", "V2")], [("b", "V2")], np.uint16, "bfloat16"):
        with pytest.raises(TypeError):
            _native.first_nonfinite_row(np.zeros((2, 2), other))
    with pytest.raises(TypeError):
        _native.first_nonfinite_row(np.zeros(3, np.float32))
    with pytest.raises(TypeError):
        _native.exact_values("l1", points, points, np.zeros((5, 1), np.int64), np.zeros((5, 1), np.float32))


OUT_OF_MEMORY = """
import resource
import numpy as np
from tonari.core import _native

m, d = 40_000, 576
form = _native.Form("euclidean", [0.0] * d, 1.0)
rows = np.random.default_rng(0).integers(0, 9, (m, d), np.uint8)
packed = _native.PackedPoints({kernel!r}, form, rows, 0, 64)
block = _native.RowBlock({kernel!r}, form, rows, rows[:64], 3, "avx512", None, False, False, 64, 0)
block.open(0, m)
in_use = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (in_use + 2**20, resource.RLIM_INFINITY))
try:
    block.screen(packed, 0, packed.groups)
except MemoryError:
    print("refused", flush=True)
resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
block.screen(packed, 0, packed.groups)
print("screened", flush=True)
"""


@pytest.mark.process
@pytest.mark.parametrize("kernel", [name for name in _native.kernel_names() if name.endswith("/amx")])
def test_sums_that_find_no_memory_are_an_error(kernel: str) -> None:
    """Sums of 40,000 queries, 5 MB or more, are kept for the next chunk of dimensions."""
    code = OUT_OF_MEMORY.format(kernel=kernel)
    own_pages = os.environ | {"MALLOC_MMAP_THRESHOLD_": "65536"}  # memory of the system, not memory that malloc keeps
    child = subprocess.run(
        [sys.executable, "-c", code], env=own_pages, capture_output=True, text=True, timeout=120, check=False
    )
    assert (child.returncode, child.stdout.split()) == (0, ["refused", "screened"]), child.stderr
