"""Public search functions: accepted and refused arguments, messages, unchanged inputs, and the cost of the import."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

import tonari
from tests.helpers import checks
from tests.helpers.checks import assert_same_neighbors
from tonari.core.results.neighbors import Neighbors
from tonari.metrics.reference import brute

Array = npt.NDArray[Any]

X = checks.gaussian(20, 4)


def bad(value: Any, at: tuple[int, int] = (3, 1)) -> Array:
    rows = X.copy()
    rows[at] = value
    return rows


# A fault of a set of rows -> the rows, the error, and words of the message.
BAD_ROWS: dict[str, tuple[Any, type[Exception], str]] = {
    "NaN": (bad(np.nan), ValueError, r"row 3 has a value that is not finite \(nan in column 1\)"),
    "infinity": (bad(-np.inf, (0, 2)), ValueError, r"row 0 has a value that is not finite \(-inf in column 2\)"),
    "NaN in float16": (bad(np.nan, (19, 3)).astype(np.float16), ValueError, r"row 19 .*nan in column 3"),
    "NaN in bfloat16": (bad(np.nan, (19, 3)).astype("bfloat16"), ValueError, r"row 19 .*nan in column 3"),
    "infinity in bfloat16": (bad(3.4e38, (7, 0)).astype("bfloat16"), ValueError, r"row 7 .*inf in column 0"),
    "bytes of bfloat16": (
        X.astype("bfloat16").view("V2"),
        TypeError,
        r"raw bytes \(\|V2\).*\.view\(ml_dtypes.bfloat16",
    ),
    "float8": (X.astype(ml_dtypes.float8_e5m2), TypeError, r"float8_e5m2 is not supported.*\.astype"),
    "overflowing float64": (X.astype(np.float64) * 1e200, ValueError, r"row 0 .*overflows float64.*within 1e\+150"),
    "one dimension": (X[0], ValueError, r"expected shape \(n, d\), got \(4,\).*reshape\(1, -1\)"),
    "three dimensions": (X[None], ValueError, r"expected shape \(n, d\), got \(1, 20, 4\)"),
    "a number": (3.0, ValueError, r"expected shape \(n, d\), got \(\)"),
    "no columns": (X[:, :0], ValueError, r"shape \(20, 0\) is empty"),
    "objects": (X.astype(object), TypeError, r"object .* is not supported, only float32.*int8; expected rows"),
    "complex": (X.astype(np.complex64), TypeError, r"complex64 is not supported, only float32"),
    "int64": (np.arange(80).reshape(20, 4) * 2**20, ValueError, r"row 4 has the int64 number 17825792 in column 1"),
    "bool": (X > 0, TypeError, r"bool is not supported.*astype\(numpy.uint8\)"),
    "text": (np.array([["a", "b"]]), TypeError, r"text is not supported"),
    "unequal lists": ([[1.0, 2.0], [3.0]], ValueError, r"cannot be read as an array of shape \(n, d\)"),
}


@pytest.mark.parametrize("what", BAD_ROWS)
def test_bad_rows(what: str) -> None:
    rows, error, message = BAD_ROWS[what]
    with pytest.raises(error, match="^queries: .*" + message):
        tonari.search(rows, X, 2)
    with pytest.raises(error, match="^queries: .*" + message):
        tonari.Index(X).search(rows, 2)
    for call in (lambda: tonari.search(X, rows, 2), lambda: tonari.Index(rows), lambda: tonari.knn_graph(rows, 2)):
        with pytest.raises(error, match="^points: .*" + message):
            call()


# A fault of an argument -> the argument, the error, and words of the message.
BAD_ARGUMENTS: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "k of zero": ({"k": 0}, ValueError, r"k=0: the smallest k is 1"),
    "negative k": ({"k": -3}, ValueError, r"k=-3: the smallest k is 1"),
    "fractional k": ({"k": 2.5}, TypeError, r"k=2.5: expected a whole number, got float"),
    "k as text": ({"k": "5"}, TypeError, r"k='5': expected a whole number, got str"),
    "k as bool": ({"k": True}, TypeError, r"k=True: expected a whole number, got a bool"),
    "k of None": ({"k": None}, TypeError, r"k=None: expected a whole number, got NoneType"),
    "metric": ({"metric": "euclidian"}, ValueError, r"unknown metric 'euclidian'; .*linf, chi2.*mean 'euclidean'\?"),
    "metric of None": ({"metric": None}, ValueError, r"unknown metric None; expected one of euclidean"),
    "method": ({"method": "hnsw"}, ValueError, r"unknown method 'hnsw'; expected one of 'auto', 'exact', 'kdtree'"),
    "device": ({"device": "tpu"}, ValueError, r"device='tpu': expected \"auto\", \"cpu\", \"cuda\""),
    "no threads": ({"threads": 0}, ValueError, r"threads=0: expected at least 1"),
    "fractional threads": ({"threads": 1.5}, TypeError, r"threads=1.5: expected a whole number, got float"),
    "memory without a unit": ({"memory": "12"}, ValueError, r"memory='12': expected a number and a unit"),
    "negative memory": ({"memory": -1}, ValueError, r"memory=-1: expected at least one byte"),
    "fractional memory": ({"memory": 0.5}, TypeError, r"memory=0.5: expected a whole number of bytes"),
    "hardly any memory": ({"memory": "1kB"}, ValueError, r"budget of 1000 bytes cannot hold .*allow at least \d+"),
}


@pytest.mark.parametrize("what", BAD_ARGUMENTS)
def test_bad_arguments(what: str) -> None:
    arguments, error, message = BAD_ARGUMENTS[what]
    given = {"k": 2} | arguments
    for call in (
        lambda: tonari.search(X, X, **given),
        lambda: tonari.knn_graph(X, **given),
        lambda: tonari.plan(20, 20, 4, **given),
        lambda: _index_search(**given),
    ):
        with pytest.raises(error, match=message):
            call()


def _index_search(k: Any, **given: Any) -> Neighbors:
    return tonari.Index(X, **given).search(X, k)


def test_k_beyond_the_points() -> None:
    with pytest.raises(ValueError, match=r"k=21: the largest k is 20, as there are 20 points$"):
        tonari.search(X, X, 21)
    with pytest.raises(ValueError, match=r"k=21: the largest k is 20, as there are 20 points$"):
        tonari.Index(X).search(X, 21)
    with pytest.raises(
        ValueError, match=r"k=20: the largest k is 19, as there are 20 points and a point is not its own"
    ):
        tonari.knn_graph(X, 20)
    with pytest.raises(ValueError, match=r"k=21: the largest k is 20, as there are 20 points$"):
        tonari.knn_graph(X, 21, include_self=True)
    assert tonari.knn_graph(X, 20, include_self=True).k == 20


def test_unequal_widths() -> None:
    message = r"queries of shape \(20, 3\) and points of shape \(20, 4\) must have the same number of columns"
    with pytest.raises(ValueError, match=message):
        tonari.search(X[:, :3], X, 2)
    with pytest.raises(ValueError, match=message):
        tonari.Index(X).search(X[:, :3], 2)


def test_negative_values_under_chi2() -> None:
    rows = np.abs(X)
    rows[7, 2] = -0.5
    message = r"row 7 has a negative value \(-0.5 in column 2\)"
    for name, call in (
        ("queries", lambda: tonari.search(rows, np.abs(X), 2, metric="chi2")),
        ("points", lambda: tonari.search(np.abs(X), rows, 2, metric="chi2")),
        ("points", lambda: tonari.knn_graph(rows, 2, metric="chi2")),
    ):
        with pytest.raises(ValueError, match=f"^{name}: {message}"):
            call()


# Arrays with the same numbers in other layouts.
def _read_only(rows: Array, tmp_path: Path) -> Array:
    rows = rows.copy()
    rows.flags.writeable = False
    return rows


def _strided(rows: Array, tmp_path: Path) -> Array:
    wide = np.zeros((2 * len(rows), 3 * rows.shape[1]), rows.dtype)
    wide[::2, ::3] = rows
    return wide[::2, ::3]


def _reversed(rows: Array, tmp_path: Path) -> Array:
    return np.ascontiguousarray(rows[::-1])[::-1]


def _memmap(rows: Array, tmp_path: Path) -> Array:
    path = tmp_path / f"{len(list(tmp_path.iterdir()))}.npy"
    np.save(path, rows)
    return np.load(path, mmap_mode="r").view(rows.dtype)  # NumPy files cannot store bfloat16


def _unaligned(rows: Array, tmp_path: Path) -> Array:
    held = np.zeros(rows.nbytes + 1, np.uint8)
    view = held[1:].view(rows.dtype).reshape(rows.shape)
    view[:] = rows
    return view


LAYOUTS: list[Callable[[Array, Path], Any]] = [
    _read_only,
    _strided,
    _reversed,
    _memmap,
    _unaligned,
    lambda rows, _: np.asfortranarray(rows),
    lambda rows, _: rows.astype(rows.dtype.newbyteorder(">")),
    lambda rows, _: np.matrix(rows) if rows.dtype == np.float32 else rows,
]


@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")
@pytest.mark.parametrize("dtype", checks.DTYPES)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts(layout: Callable[[Array, Path], Any], dtype: str, tmp_path: Path) -> None:
    rows = np.abs(checks.gaussian(90, 7) * 30).astype(dtype)
    queries, points = layout(rows[:9], tmp_path), layout(rows, tmp_path)
    truth = brute(rows[:9], rows, 5)
    assert_same_neighbors(tonari.search(queries, points, 5), truth)
    graph = tonari.knn_graph(points, 5)
    own = np.arange(90)
    assert_same_neighbors(Neighbors(graph.distances, graph.indices), brute(rows, rows, 5, self_ids=own))


def test_lists_of_floats_are_float64() -> None:
    found = tonari.search([[0.0, 0.5]], [[3.0, 4.5], [0.0, 1.5]], 2)
    assert found.distances.dtype == np.float64
    assert (found.distances.tolist(), found.indices.tolist()) == ([[1.0, 5.0]], [[1, 0]])


def test_input_is_left_alone_and_results_are_new_memory() -> None:
    queries, points = X[:5].copy(), X.copy()
    index = tonari.Index(points)
    first, second = index.search(queries, 3), index.search(queries, 3)
    np.testing.assert_array_equal(queries, X[:5])
    np.testing.assert_array_equal(points, X)
    kept = Neighbors(*(part.copy() for part in second))
    for part in first:
        assert part.flags.owndata
        assert part.flags.writeable
        assert not any(np.shares_memory(part, other) for other in (queries, points, *second))
        part[:] = 0
    assert_same_neighbors(second, kept)
    assert_same_neighbors(index.search(queries, 3), kept)


def test_progress_reaches_the_total() -> None:
    rows = checks.gaussian(3000, 8)
    for arguments in ({"threads": 1}, {"threads": 3}, {"threads": 2, "memory": "6MB"}):
        seen: list[tuple[int, int]] = []
        count = lambda done, total, seen=seen: seen.append((done, total))  # noqa: E731
        tonari.search(rows, rows, 5, method="exact", progress=count, **arguments)
        done = [d for d, _ in seen]
        assert all(type(value) is int for pair in seen for value in pair)
        assert done == sorted(done)
        assert seen[-1][0] == seen[-1][1] == 3000 * 3000
        assert len(seen) > 1


def test_progress_counts_rows_that_are_searched_again() -> None:
    rows = checks.gaussian(3000, 8)
    plan = tonari.plan(3000, 50, 8, 5, threads=1, sample_stride=2, sample_rank=1)
    seen: list[tuple[int, int]] = []
    tonari.search(rows[:50], rows, 5, plan=plan, progress=lambda *pair: seen.append(pair))
    assert seen[-1][0] == seen[-1][1] > 50 * 3000


def test_a_bar_is_drawn_on_request_only(capsys: pytest.CaptureFixture[str]) -> None:
    tonari.search(X, X, 2)
    tonari.search(X, X, 2, progress=False)
    assert capsys.readouterr() == ("", "")
    tonari.search(X, X, 2, progress=True)
    out, err = capsys.readouterr()
    assert out == ""
    assert "neighbours" in err


def test_a_run_is_reported_to_the_log(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO", logger="tonari"):
        tonari.search(X[:7], X, 2)
    assert [record.name for record in caplog.records] == ["tonari"]
    assert "7 rows in " in caplog.text


@pytest.mark.parametrize("dtype", ["int16", "int64", "uint32"])
def test_whole_numbers_are_searched_as_float32(dtype: str) -> None:
    given = np.random.default_rng(0).integers(0, 9, (20, 4)).astype(dtype)
    rows = given.astype(np.float32)
    same = tonari.search(rows[:3], rows, 5)
    for found in (tonari.search(given[:3], given, 5), tonari.search(given[:3], rows, 5)):
        assert [part.tobytes() for part in found] == [part.tobytes() for part in same]
    index = tonari.Index(given[:-2])
    index.add(given[-2:])
    assert index.add(given[:0]).tolist() == []
    assert index.search(given[:3], 5).distances.tobytes() == same.distances.tobytes()
    assert tonari.knn_graph(given, 3).distances.tobytes() == tonari.knn_graph(rows, 3).distances.tobytes()
    scaled = tonari.search(given[:3], given, 5, weights=[1, 2, 3, 4])
    assert scaled.distances.tobytes() == tonari.search(rows[:3], rows, 5, weights=[1, 2, 3, 4]).distances.tobytes()


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_an_array_without_rows_may_begin_at_any_address(dtype: str) -> None:
    """NumPy calls it aligned, so that no copy is made."""
    none, x = np.frombuffer(bytes(9), dtype, count=0, offset=1).reshape(0, 4), checks.gaussian(30, 4).astype(dtype)
    index = tonari.Index(x)
    for found in (tonari.search(none, x, 3), index.search(none, 3), tonari.farthest(none, x, 3)):
        assert found.indices.shape == (0, 3)
    for lists in (tonari.radius_search(none, x, 1.0), index.radius_search(none, 1.0)):
        assert lists.indptr.tolist() == [0]
    assert len(tonari.radius_count(none, x, 1.0)) == len(index.radius_count(none, 1.0)) == 0
    assert len(tonari.mutual_neighbors(none, x, 3).left) == 0
    assert len(index.add(none)) == 0
    nothing = np.frombuffer(bytes(9), np.int64, count=0, offset=1)
    assert tonari.search(x, x, 3, exclude=(np.zeros(31, np.int64), nothing)).indices.shape == (30, 3)
