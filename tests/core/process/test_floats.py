"""The same bits in each floating-point environment of the caller: flushed subnormal numbers, and each rounding mode."""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import inspect
import platform
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import tonari
from tests.helpers import checks
from tonari.core import _native
from tonari.core.process.floats import in_default_floats
from tonari.core.results.neighbors import Neighbors
from tonari.io import read_ground_truth, write_ground_truth
from tonari.metrics import METRICS
from tonari.metrics.recall import neighbors_recall
from tonari.metrics.reference import brute
from tonari.select.registry import METHODS

Array = npt.NDArray[Any]

_LIBC = ctypes.CDLL(None)
_ARM = platform.machine() in ("aarch64", "arm64")
_DIRECTIONS = {"nearest": 0, "down": 1, "up": 2, "zero": 3}  # in the order of x86; ARM has up before down
if _ARM:
    _DIRECTIONS = {"nearest": 0, "up": 1, "down": 2, "zero": 3}
_STEP = 1 << (22 if _ARM else 10)
# In glibc's fenv_t: the word with the control bits, and the bits that flush subnormals (FZ of FPCR, FTZ and DAZ of
# MXCSR).
_WORD, _FLUSH = (0, 1 << 24) if _ARM else (7, 0x8040)

ENVIRONMENTS = ("flush", "down", "up", "zero")
N, M, D, K = 400, 40, 19, 7


def _set_flush(flush: bool) -> None:
    words = (ctypes.c_uint32 * 8)()
    assert _LIBC.fegetenv(words) == 0
    words[_WORD] = words[_WORD] | _FLUSH if flush else words[_WORD] & ~_FLUSH
    assert _LIBC.fesetenv(words) == 0


def _probe() -> tuple[str, ...]:
    """Identify the environment by arithmetic."""
    one, tiny, least = np.float32(1), np.float32(2**-30), np.float32(1e-39)
    return tuple(str(value) for value in (one + tiny, one - tiny, -one - tiny, least * one))


@contextlib.contextmanager
def environment(name: str) -> Iterator[None]:
    """Set the environment on this thread, and check at the end that it is still set."""
    usual = _probe()
    try:
        if name == "flush":
            _set_flush(True)
        else:
            assert _LIBC.fesetround(_DIRECTIONS[name] * _STEP) == 0
        there = _probe()
        assert there != usual
        yield
        assert _probe() == there
    finally:
        _set_flush(False)
        assert _LIBC.fesetround(0) == 0


def data(kind: str, n: int, d: int = D, seed: int = 0) -> Array:
    if kind == "subnormal":
        return checks.subnormal(n, d, seed)
    rows = checks.gaussian(n, d, seed, np.float64) / 3
    return rows if kind == "float64" else rows.astype(np.float32)


def bits(answer: Any) -> Any:
    """Return the bytes of an answer; zeros of different sign differ."""
    if isinstance(answer, np.ndarray):
        return answer.dtype.str, answer.shape, answer.tobytes()
    if isinstance(answer, tonari.KNNGraph):
        report = answer.report and dataclasses.replace(answer.report, seconds=0.0)
        return bits((answer.indices, answer.distances)), report
    if isinstance(answer, list | tuple):
        return [bits(part) for part in answer]
    return answer


# Preparations with NumPy alone, which tonari cannot protect from the environment.
suitable = in_default_floats(lambda rows, metric: checks.in_range(checks.accepted(rows, metric), metric))
truth_of = in_default_floats(brute)
converted = in_default_floats(lambda rows, dtype: rows.astype(dtype))
scaled = in_default_floats(lambda distances: distances * distances.dtype.type(1.25))


def searches(rows: Array, folder: Path) -> list[Any]:
    found = []
    for metric in METRICS:
        points = suitable(rows, metric)
        for threads in (1, 2):
            found.append(tonari.search(points[:M], points, K, metric=metric, method="exact", threads=threads))
    return found


def through_an_index(rows: Array, folder: Path) -> list[Any]:
    index = tonari.Index(rows)
    return [index.search(rows[:M], K), *index.search_chunks(rows[:M], K, chunk_rows=11)]


def by_a_tree(rows: Array, folder: Path) -> list[Any]:
    given: dict[str, Any] = {"method": "kdtree", "threads": 2}
    points = np.ascontiguousarray(rows[:, :4])
    metrics = ("euclidean", "l1", "linf")
    return [tonari.search(points[:M], points, K, metric=metric, **given) for metric in metrics]


def exact_graph(rows: Array, folder: Path) -> list[Any]:
    metrics = ("euclidean", "inner_product")
    return [tonari.knn_graph(suitable(rows, metric), K, metric=metric, include_self=True) for metric in metrics]


def approximate_graph(rows: Array, folder: Path) -> list[Any]:
    return [
        tonari.knn_graph(suitable(rows, metric), K, metric=metric, method="nn-descent", recall=0.8, threads=2)
        for metric in METRICS
    ]


def joined_graphs(rows: Array, folder: Path) -> list[Any]:
    few = rows[: N // 2], rows[N // 2 :]
    exact = [tonari.knn_graph(part, K) for part in few]
    approximate = [tonari.knn_graph(part, K, method="nn-descent", recall=0.8) for part in few]
    joined = [
        tonari.merge(*exact, *few),
        tonari.merge(*approximate, *few, recall=0.8),
        exact[0].add(few[0], few[1][:3]),
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tonari.graph.tuning.MERGE_SHARE", 0.0)  # by rounds, as if both sides were large
        return [*joined, tonari.merge(*approximate, *few, recall=0.8)]


def joined_lists(rows: Array, folder: Path) -> list[Any]:
    found = []
    for metric in ("euclidean", "inner_product"):
        points = suitable(rows, metric)
        # An order that only exact values show: with flushed values, ties would go to the smaller index.
        parts = [tonari.search(points[:M], points[begin : begin + N // 2], K, metric=metric) for begin in (0, N // 2)]
        found.append(tonari.merge_neighbors(parts, [0, N // 2], metric=metric))
    return found


def selections(rows: Array, folder: Path) -> list[Any]:
    dtypes = (rows.dtype, np.dtype(np.float16))
    return [
        tonari.select_k(converted(rows, dtype), K, method=method, largest=largest)
        for dtype in dtypes
        for method in ("auto", *METHODS)
        for largest in (False, True)
    ]


def measured(rows: Array, folder: Path) -> list[Any]:
    graph = tonari.knn_graph(rows, K, method="nn-descent", recall=0.5)
    truth = truth_of(rows[:M], rows, K)
    wrong = Neighbors(scaled(truth.distances), (truth.indices + 1) % N)
    return [graph.recall(rows, sample=97), neighbors_recall(wrong, truth, population=1000)]


def files(rows: Array, folder: Path) -> list[Any]:
    found = []
    for number, part in enumerate((rows[:M], [rows[:3], rows[3:M]])):
        out = tonari.search_to_file(part, rows, K, folder / f"{number}.ibin", rows=M, overwrite=True)
        found.append(out.read_bytes())
    wide = converted(rows, np.float64)
    write_ground_truth(folder / "truth.ibin", truth_of(wide[:M], wide, K))
    return [*found, read_ground_truth(folder / "truth.ibin")]


def plans(rows: Array, folder: Path) -> list[Any]:
    shapes = [(10**6, 10**4, 128, 10), (10**5, 10**5, 16, 300)]
    return [tonari.plan(*shape, threads=3) for shape in shapes] + [
        tonari.plan(10**5, 10**5, 16, 10, method=method, threads=3) for method in ("kdtree", "nn-descent")
    ]


VERBS: dict[str, Callable[[Array, Path], list[Any]]] = {
    verb.__name__: verb
    for verb in (
        searches,
        through_an_index,
        by_a_tree,
        exact_graph,
        approximate_graph,
        joined_graphs,
        joined_lists,
        selections,
        measured,
        files,
        plans,
    )
}


@pytest.mark.filterwarnings("ignore:recall")
@pytest.mark.parametrize("kind", ["subnormal", "float32", "float64"])
@pytest.mark.parametrize("verb", VERBS)
def test_the_environment_of_the_caller_changes_no_bit(verb: str, kind: str, tmp_path: Path) -> None:
    rows = data(kind, N)
    usual = bits(VERBS[verb](rows, tmp_path))
    for name in ENVIRONMENTS:
        with environment(name):
            answer = VERBS[verb](rows, tmp_path)
        assert bits(answer) == usual, name


@pytest.mark.parametrize("name", sorted(tonari.__all__))
def test_all_verbs_ask_for_the_default_environment(name: str) -> None:
    """NumPy and Python also run in the default environment, although the answers above need not show it."""
    public = getattr(tonari, name)
    if name == "Index":
        assert inspect.unwrap(public.__init__) is not public.__init__
        assert inspect.unwrap(public.search) is not public.search
    elif inspect.isfunction(public):
        assert inspect.unwrap(public) is not public


def test_subnormal_neighbours_under_flush_to_zero() -> None:
    points = np.array([[3e-39], [1e-39]], np.float32)
    with environment("flush"):
        found = tonari.search(np.zeros((1, 1), np.float32), points, 2)
    assert found.indices.tolist() == [[1, 0]]
    assert (found.distances == points[::-1].T).all()


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_changed_graphs_of_transformed_rows_have_the_usual_bits(name: str) -> None:
    rows = data("float64", 20, 2)
    graph = tonari.knn_graph(rows[:15], 2, metric="haversine")
    with environment(name):
        added = graph.add(rows[:15], rows[15:])
        answers = added.remove(rows, [3]), added.replace(rows, [3], rows[4:5])
    usual = graph.add(rows[:15], rows[15:])
    assert bits(answers) == bits((usual.remove(rows, [3]), usual.replace(rows, [3], rows[4:5])))


def test_lists_are_joined_by_subnormal_distances() -> None:
    parts = [Neighbors(np.array([[value]], np.float32), np.array([[0]], np.int32)) for value in (3e-39, 1e-39)]
    with environment("flush"):
        assert tonari.merge_neighbors(parts, [0, 1]).indices.tolist() == [[1]]


def test_recall_tells_subnormal_distances_apart() -> None:
    near, far = (
        Neighbors(np.array([[value]], np.float32), np.array([[at]], np.int32)) for at, value in ((0, 1e-39), (1, 3e-39))
    )
    with environment("flush"):
        assert neighbors_recall(far, near).by_distance == 0.0


def native_calls(rows: Array) -> list[Any]:
    """Make calls of the compiled module alone, which needs its own guard: one for each group of functions."""
    ids = np.arange(M * K, dtype=np.int64).reshape(M, K) % N
    exact = []
    for metric in METRICS:
        values = np.empty((M, K))
        points = suitable(rows, metric)
        _native.exact_values(metric, points[:M], points, ids, values)
        exact.append(values)
    chosen = np.empty((M, K), np.float32), np.empty((M, K), np.int32)
    _native.select_rows(
        "generic",
        "insertion",
        rows[:M],
        "float32",
        *(0, M, K),
        lengths=None,
        largest=False,
        sorted=True,
        options={},
        out_values=chosen[0],
        out_indices=chosen[1],
        counters=None,
    )
    return [
        exact,
        chosen,
        _native.column_means(rows),
        _native.largest_magnitude(rows, [0.1] * D),
        _native.first_negative_row(rows),
    ]


@pytest.mark.parametrize("kind", ["subnormal", "float32"])
@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_kernels_have_the_default_environment_on_any_thread(name: str, kind: str) -> None:
    rows = data(kind, N)
    usual, found = bits(native_calls(rows)), []

    def work() -> None:
        with environment(name):
            found.append(bits(native_calls(rows)))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    work()
    assert found == [usual, usual]


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_other_environments_are_told_from_the_default_one(name: str) -> None:
    assert _native.has_default_floats()
    with environment(name):
        assert not _native.has_default_floats()
        with _native.DefaultFloats():
            assert _native.has_default_floats()
        assert not _native.has_default_floats()
    assert _native.has_default_floats()


@pytest.mark.parametrize("name", ENVIRONMENTS)
@pytest.mark.parametrize("kind", ["subnormal", "float32"])
def test_repeated_searches_have_the_default_environment(name: str, kind: str) -> None:
    points = data(kind, N)
    truth = bits(truth_of(points[:3], points, K))
    for _ in range(2):
        assert bits(tonari.search(points[:3], points, K)) == truth
    with environment(name):
        for _ in range(2):
            assert bits(tonari.search(points[:3], points, K)) == truth


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_the_environment_comes_back_after_an_error(name: str) -> None:
    with environment(name):  # which looks, when it ends, that it is still there
        with pytest.raises(ValueError, match="unknown metric"):
            tonari.search(np.ones((2, 2)), np.ones((2, 2)), 1, metric="none")
        with pytest.raises(ValueError, match="unknown metric"):
            _native.Form("none", [0.0], 1.0)
