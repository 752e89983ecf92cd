"""The graph: what it refuses to be, what it exports, and that a file is whole or refused."""

from __future__ import annotations

import os
import sys
from dataclasses import FrozenInstanceError
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tonari
from tests.helpers import checks
from tests.helpers.devices import HAS_TORCH, needs_torch
from tonari.graph import lists as listing
from tonari.graph.knn_graph import KNNGraph
from tonari.metrics.reference import brute, pairwise

if HAS_TORCH:
    import torch

N, K = 30, 5


def _graph(points: Any = None, k: int = K, metric: str = "euclidean", include_self: bool = False) -> KNNGraph:
    """A true graph; with include_self, self is one of the k columns."""
    points = checks.gaussian(N, 3) if points is None else points
    own = np.arange(len(points))
    distances, indices = brute(points, points, k - include_self, metric, self_ids=own)
    if include_self:
        value = np.diagonal(pairwise(points, points, metric)).astype(distances.dtype)
        distances = np.column_stack([value, distances])
        indices = np.column_stack([own, indices]).astype(np.int32)
    return KNNGraph(indices, distances, metric, "brute", include_self=include_self)


def _with_missing() -> KNNGraph:
    graph = _graph()
    graph.indices[3, 2:], graph.distances[3, 2:] = -1, np.inf
    graph.indices[7], graph.distances[7] = -1, np.inf
    return graph


def test_describes_itself() -> None:
    graph = _graph()
    assert (graph.n, graph.k, graph.seed, graph.include_self) == (N, K, None, False)
    assert repr(graph) == "KNNGraph(n=30, k=5, metric='euclidean', method='brute')"
    seeded = KNNGraph(np.array([[0], [1]]), np.zeros((2, 1)), "l1", "descent", include_self=True, seed=4)
    assert repr(seeded) == "KNNGraph(n=2, k=1, metric='l1', method='descent', seed=4, include_self=True)"
    assert graph == graph
    assert graph != _graph()
    with pytest.raises(FrozenInstanceError):
        graph.metric = "l1"  # type: ignore[misc]


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (lambda i, d: (i[:-1], d), ValueError, r"same non-empty shape \(n, k\), got \(29, 5\) and \(30, 5\)"),
        (lambda i, d: (i[:, 0], d[:, 0]), ValueError, "same non-empty shape"),
        (lambda i, d: (i[:, :0], d[:, :0]), ValueError, "same non-empty shape"),
        (lambda i, d: (i.astype(np.uint32), d), TypeError, "got uint32 and float32"),
        (lambda i, d: (i, d.astype(np.float16)), TypeError, "got int32 and float16"),
        (lambda i, d: (np.where(i == i[4, 1], N, i), d), ValueError, "has an index outside -1 to 29"),
        (lambda i, d: (np.where(i == 0, -2, i), d), ValueError, "outside -1 to"),
        (lambda i, d: (np.where(np.eye(N, K, -6, bool), np.arange(N)[:, None], i), d), ValueError, "row 6 has its own"),
    ],
)
def test_refuses(change: Any, error: type[Exception], message: str) -> None:
    graph = _graph()
    with pytest.raises(error, match=message):
        KNNGraph(*change(graph.indices.astype(np.int32), graph.distances), "euclidean", "brute")


def test_refuses_self_where_it_must_not_be() -> None:
    with_self, without = _graph(include_self=True), _graph()
    with pytest.raises(ValueError, match="row 0 does not have its own point in column 0"):
        KNNGraph(without.indices, without.distances, "euclidean", "brute", include_self=True)
    with pytest.raises(ValueError, match="row 0 has its own point among its neighbours"):
        KNNGraph(with_self.indices, with_self.distances, "euclidean", "brute")
    twice = with_self.indices.copy()
    twice[5, 3] = 5
    with pytest.raises(ValueError, match="row 5 has its own point among"):
        KNNGraph(twice, with_self.distances, "euclidean", "brute", include_self=True)
    with pytest.raises(ValueError, match="unknown metric 'euclid'"):
        KNNGraph(without.indices, without.distances, "euclid", "brute")


# What is wrong with the lists of points 4 and later of a graph, and what is said of it.
def _spoilt(change: Any, metric: str = "euclidean", include_self: bool = False) -> tuple[Any, Any]:
    graph = _graph(metric=metric, include_self=include_self)
    change(graph.indices, graph.distances)
    return graph.indices, graph.distances


def _repeated(i: Any, d: Any) -> None:
    i[4, 3] = i[4, 1]
    i[9, 3] = i[9, 1]


def _nan(i: Any, d: Any) -> None:
    d[4, 2] = np.nan


def _nan_for_self(i: Any, d: Any) -> None:
    d[4, 0] = np.nan


def _nan_missing(i: Any, d: Any) -> None:
    i[4, 4], d[4, 4] = -1, np.nan


def _swapped(i: Any, d: Any) -> None:
    d[4, [1, 2]] = d[4, [2, 1]]
    i[4, [1, 2]] = i[4, [2, 1]]


def _reversed(i: Any, d: Any) -> None:
    i[4:, 1:], d[4:, 1:] = i[4:, :0:-1].copy(), d[4:, :0:-1].copy()


def _missing_first(i: Any, d: Any) -> None:
    i[4, 1], d[4, 1:] = -1, np.inf


def _missing_but_near(i: Any, d: Any) -> None:
    i[4, 4] = -1


def _beyond(i: Any, d: Any) -> None:
    i[4, 4] = len(i)


SPOILT = {
    "an index beyond the points": (_beyond, "euclidean", "row 4 has an index outside -1 to"),
    "an id twice": (_repeated, "euclidean", "row 4 lists a point twice"),
    "NaN": (_nan, "euclidean", "row 4 has a distance that is NaN"),
    "NaN for a missing neighbour": (_nan_missing, "euclidean", "row 4 has a distance that is NaN"),
    "two swapped": (_swapped, "euclidean", "row 4 is not in order: distances must ascend"),
    "descending": (_reversed, "l1", "row 4 is not in order: distances must ascend"),
    "ascending similarities": (_reversed, "inner_product", "row 4 is not in order: similarities must descend"),
    "missing before there": (_missing_first, "euclidean", r"row 4 has a neighbour after a missing one \(-1\)"),
    "missing but near": (_missing_but_near, "euclidean", r"row 4 has a distance for a missing neighbour \(-1\)"),
}


@pytest.mark.parametrize("kind", ["numpy", pytest.param("torch", marks=needs_torch)])
@pytest.mark.parametrize("include_self", [False, True])
@pytest.mark.parametrize("what", SPOILT)
def test_rows_that_are_no_lists_are_refused(what: str, include_self: bool, kind: str) -> None:
    change, metric, message = SPOILT[what]
    lists = _spoilt(change, metric, include_self)
    lists = tuple(map(torch.from_numpy, lists)) if kind == "torch" else lists
    with pytest.raises(ValueError, match=message):
        KNNGraph(*lists, metric, "exact", include_self)


@pytest.mark.parametrize("what", SPOILT)
@pytest.mark.parametrize("at_once", [1, 12, 20])
def test_rows_are_looked_at_part_by_part(what: str, at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "_CHECKED_AT_ONCE", at_once)
    change, metric, message = SPOILT[what]
    with pytest.raises(ValueError, match=message):
        KNNGraph(*_spoilt(change, metric), metric, "exact")
    assert _graph().n == N


def test_a_distance_to_self_that_is_nan_is_refused() -> None:
    with pytest.raises(ValueError, match="row 4 has a distance that is NaN"):
        KNNGraph(*_spoilt(_nan_for_self, include_self=True), "euclidean", "exact", True)


def test_lists_that_may_be_are_taken() -> None:
    """Missing at the end, ties, float32 overflow, and self that is less similar than another."""
    far = np.array([[1.0, np.inf], [1.0, np.inf], [np.inf, np.inf]], np.float32)
    graph = KNNGraph(np.array([[1, 2], [0, 2], [0, 1]], np.int32), far, "sqeuclidean", "exact")
    assert graph.n == 3
    nowhere = np.array([[5.0, -np.inf], [5.0, 2.0], [-np.inf, -np.inf]])
    assert KNNGraph(np.array([[1, -1], [0, 2], [-1, -1]]), nowhere, "inner_product", "exact").k == 2
    points = np.array([[1.0, 0.0], [9.0, 0.0], [0.0, 1.0]], np.float32)
    made = tonari.knn_graph(points, 3, metric="inner_product", include_self=True)
    assert made.distances[0].tolist() == [1.0, 9.0, 0.0]


@pytest.mark.parametrize("what", SPOILT)
def test_load_names_the_row(what: str, tmp_path: Path) -> None:
    change, metric, message = SPOILT[what]
    indices, distances = _spoilt(change, metric)
    _resave(tmp_path / "spoilt.npz", metric, indices=indices, distances=distances)
    with pytest.raises(ValueError, match=rf"spoilt\.npz: .*{message}"):
        KNNGraph.load(tmp_path / "spoilt.npz")


# ---------------------------------------------------------------- tensors in host memory


@needs_torch
@pytest.mark.parametrize("include_self", [False, True])
@pytest.mark.parametrize(
    "how", [{"method": "exact"}, {"method": "kdtree"}, {"method": "nn-descent"}, {"metric": "inner_product"}]
)
def test_a_graph_of_tensors_in_host_memory_has_tensors(how: dict[str, Any], include_self: bool, tmp_path: Path) -> None:
    points = checks.gaussian(200, 3)
    expected = tonari.knn_graph(points, 4, include_self=include_self, **how)
    graph = tonari.knn_graph(torch.from_numpy(points), 4, include_self=include_self, **how)
    for ours, theirs in zip((graph.indices, graph.distances), (expected.indices, expected.distances), strict=True):
        assert type(theirs) is np.ndarray
        assert isinstance(ours, torch.Tensor)
        assert ours.numpy().dtype == theirs.dtype
        assert ours.numpy().tobytes() == theirs.tobytes()
    assert repr(graph) == repr(expected)
    assert graph.recall(torch.from_numpy(points), sample=50) == expected.recall(points, sample=50)
    assert (graph.to_csr() != expected.to_csr()).nnz == 0
    graph.save(tmp_path / "ours.npz")
    KNNGraph.load(tmp_path / "ours.npz").save(tmp_path / "again.npz")
    assert (tmp_path / "ours.npz").read_bytes() == (tmp_path / "again.npz").read_bytes()
    as_numpy = graph.to_numpy()
    assert type(as_numpy.indices) is type(as_numpy.distances) is np.ndarray
    assert np.shares_memory(as_numpy.distances, graph.distances.numpy())


@needs_torch
def test_a_graph_of_self_alone_has_tensors() -> None:
    assert isinstance(tonari.knn_graph(torch.zeros(5, 2), 1, include_self=True).indices, torch.Tensor)


@needs_torch
def test_a_graph_to_start_with_may_have_tensors() -> None:
    points = checks.gaussian(200, 3)
    begun = [tonari.knn_graph(x, 4, include_self=True) for x in (points, torch.from_numpy(points))]
    made = [tonari.knn_graph(points, 4, method="nn-descent", start=start) for start in begun]
    assert made[0].indices.tobytes() == made[1].indices.tobytes()


@needs_torch
def test_arrays_of_two_kinds_are_refused() -> None:
    graph = _graph()
    with pytest.raises(TypeError, match="indices are of torch and distances of numpy: both must be"):
        KNNGraph(torch.from_numpy(graph.indices), graph.distances, "euclidean", "brute")


# ---------------------------------------------------------------- export


def test_csr_keeps_the_order_and_every_entry() -> None:
    graph = _graph()
    matrix = graph.to_csr()
    assert type(matrix).__name__ == "csr_matrix"  # scanpy refuses csr_array
    assert matrix.shape == (N, N)
    assert matrix.indptr.tolist() == list(range(0, N * K + 1, K))
    assert matrix.indices.reshape(N, K).tolist() == graph.indices.tolist()
    assert matrix.data.reshape(N, K).tobytes() == graph.distances.tobytes()
    assert matrix.indices.dtype == matrix.indptr.dtype == np.int32
    matrix.data[:] = -1
    matrix.indices[:] = 0
    assert graph.distances.min() > 0, "the matrix shares memory with the graph"
    assert graph.indices.max() > 0


def test_csr_in_order_of_index() -> None:
    graph = _graph()
    matrix = graph.to_csr(order="index")
    assert matrix.has_canonical_format
    assert (np.diff(matrix.indices.reshape(N, K)) > 0).all()
    np.testing.assert_array_equal(matrix.toarray(), graph.to_csr().toarray())
    assert not graph.to_csr().has_sorted_indices


@pytest.mark.parametrize("order", ["distance", "index"])
def test_csr_keeps_distances_of_zero_and_drops_missing_entries(order: Any) -> None:
    equal = _graph(checks.all_equal(6, 2), k=3).to_csr(order=order)
    assert equal.nnz == 18
    assert not equal.data.any()
    matrix = _with_missing().to_csr(order=order)
    counts = np.diff(matrix.indptr)
    assert counts[3] == 2
    assert counts[7] == 0
    assert matrix.nnz == N * K - 3 - 5
    assert np.isfinite(matrix.data).all()
    assert sorted(matrix[3].indices) == sorted(_graph().indices[3, :2])


@pytest.mark.parametrize("has", [True, False])
@pytest.mark.parametrize("wants", [True, False, None])
def test_csr_with_and_without_self(has: bool, wants: bool | None) -> None:
    graph = _graph(include_self=has, k=K + has)
    matrix = graph.to_csr(include_self=wants)
    expected = has if wants is None else wants
    assert (np.diff(matrix.indptr) == K + expected).all()
    rows = matrix.indices.reshape(N, -1)
    assert rows[:, int(expected) :].tolist() == _graph().indices.tolist()
    if expected:
        assert rows[:, 0].tolist() == list(range(N))
        assert not matrix.data.reshape(N, -1)[:, 0].any()
    assert matrix.indices.dtype == np.int32
    assert matrix.data.dtype == np.float32


def test_csr_adds_self_to_a_row_without_neighbours() -> None:
    matrix = _with_missing().to_csr(include_self=True)
    assert matrix[7].indices.tolist() == [7]
    assert np.diff(matrix.indptr)[3] == 3


def test_csr_of_similarities() -> None:
    without = _graph(metric="inner_product")
    with pytest.raises(ValueError, match="build it with include_self=True"):
        without.to_csr(include_self=True)
    assert without.to_csr().nnz == N * K
    points = checks.gaussian(N, 3)
    kept = _graph(points, metric="inner_product", include_self=True).to_csr(include_self=True)
    np.testing.assert_allclose(kept.diagonal(), np.square(points).sum(axis=1), rtol=1e-6)


def test_csr_refuses_another_order_and_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match='order=\'row\': expected "distance" or "index"'):
        _graph().to_csr(order="row")  # type: ignore[arg-type]
    monkeypatch.setitem(sys.modules, "scipy.sparse", None)
    with pytest.raises(ImportError, match=r"pip install 'tonari\[sparse\]'"):
        _graph().to_csr()


@pytest.mark.parametrize("symmetric", [None, "union", "mutual"])
@pytest.mark.parametrize("order", ["distance", "index"])
@pytest.mark.parametrize("include_self", [False, True])
@pytest.mark.parametrize("dtype", [None, "float32", np.float64])
def test_csr_of_a_dtype_has_the_same_entries_in_the_same_order(
    dtype: Any, include_self: bool, order: Any, symmetric: Any
) -> None:
    for points in (checks.gaussian(40, 3), checks.offset_float64(40, 3)):
        graph = tonari.knn_graph(points, 4)
        given: dict[str, Any] = {"order": order, "include_self": include_self, "symmetric": symmetric}
        plain, made = graph.to_csr(**given), graph.to_csr(dtype=dtype, **given)
        assert made.data.dtype == np.dtype(dtype or graph.distances.dtype)
        assert made.data.tobytes() == plain.data.astype(made.data.dtype).tobytes()
        assert made.indices.tolist() == plain.indices.tolist()
        assert made.indptr.tolist() == plain.indptr.tolist()


def _both_ways(graph: KNNGraph, how: str, include_self: bool) -> dict[tuple[int, int], float]:
    """What a symmetric matrix is to hold, entry by entry."""
    nearer = max if graph.metric == "inner_product" else min
    first = int(graph.include_self)
    listed = {
        (i, int(j)): float(value)
        for i in range(graph.n)
        for j, value in zip(graph.indices[i, first:], graph.distances[i, first:], strict=True)
        if j >= 0
    }
    both = {}
    for (i, j), value in listed.items():
        other = listed.get((j, i))
        if how == "union" or other is not None:
            both[i, j] = both[j, i] = value if other is None else nearer(value, other)
    if include_self:
        both |= {(i, i): float(graph.distances[i, 0]) if first else 0.0 for i in range(graph.n)}
    return both


def _odd(graph: KNNGraph) -> KNNGraph:
    """As if from elsewhere: its distances differ by direction."""
    graph.distances[:] *= 1 + np.arange(N)[:, None] / 100
    return graph


SYMMETRIC: dict[str, Any] = {
    "plain": lambda: (_graph(), False),
    "with self": lambda: (_graph(include_self=True), True),
    "self added": lambda: (_graph(), True),
    "self taken away": lambda: (_graph(include_self=True), False),
    "similarities": lambda: (_graph(metric="inner_product", include_self=True), True),
    "all equal": lambda: (_graph(checks.all_equal(N, 2)), True),
    "duplicates": lambda: (_graph(checks.duplicates(N, 2)), False),
    "missing": lambda: (_with_missing(), False),
    "differing distances": lambda: (_odd(_with_missing()), False),
    "differing similarities": lambda: (_odd(_graph(metric="inner_product")), False),
}


@pytest.mark.parametrize("order", ["distance", "index"])
@pytest.mark.parametrize("how", ["union", "mutual"])
@pytest.mark.parametrize("what", SYMMETRIC)
def test_csr_both_ways(what: str, how: Any, order: Any) -> None:
    graph, include_self = SYMMETRIC[what]()
    matrix = graph.to_csr(symmetric=how, order=order, include_self=include_self)
    wanted = _both_ways(graph, how, include_self)
    rows = np.repeat(np.arange(N), np.diff(matrix.indptr))
    entries = list(zip(rows.tolist(), matrix.indices.tolist(), strict=True))
    assert len(entries) == len(set(entries)) == len(wanted)  # those of 0 as well
    assert dict(zip(entries, matrix.data.tolist(), strict=True)) == wanted
    sign = -1 if graph.metric == "inner_product" else 1
    keys: dict[str, Any] = {
        "index": lambda entry: entry,
        "distance": lambda entry: (entry[0], entry[0] != entry[1], sign * wanted[entry], entry[1]),
    }
    assert entries == sorted(entries, key=keys[order])
    assert type(matrix).__name__ == "csr_matrix"
    assert matrix.indices.dtype == matrix.indptr.dtype == np.int32
    assert matrix.data.dtype == np.float32


def test_csr_refuses_another_dtype_or_symmetry() -> None:
    with pytest.raises(TypeError, match="dtype=float16: expected float32 or float64"):
        _graph().to_csr(dtype="float16")
    with pytest.raises(TypeError, match="dtype='flot': expected float32 or float64"):
        _graph().to_csr(dtype="flot")
    with pytest.raises(ValueError, match='symmetric=\'max\': expected "union", "mutual" or None'):
        _graph().to_csr(symmetric="max")  # type: ignore[arg-type]


def test_scikit_learn_takes_the_graph() -> None:
    neighbors = pytest.importorskip("sklearn.neighbors")
    points = checks.gaussian(60, 4)
    model = neighbors.NearestNeighbors(n_neighbors=6, metric="precomputed")
    model.fit(_graph(points, k=6).to_csr(include_self=True))
    _, ids = model.kneighbors()
    assert ids.tolist() == brute(points, points, 6, self_ids=np.arange(60)).indices.tolist()


@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("seed", [None, 7, np.int64(2**40)])
def test_a_saved_graph_comes_back(tmp_path: Path, include_self: bool, seed: Any) -> None:
    made = _graph(checks.offset_float64(N, 3), include_self=include_self)
    graph = KNNGraph(made.indices, made.distances, "euclidean", "brute", include_self=include_self, seed=seed)
    graph.save(tmp_path / "graph.npz")
    back = KNNGraph.load(tmp_path / "graph.npz")
    assert (back.metric, back.method, back.include_self, back.seed) == ("euclidean", "brute", include_self, seed)
    for name in ("indices", "distances"):
        ours, theirs = getattr(graph, name), getattr(back, name)
        assert ours.dtype == theirs.dtype
        assert ours.tobytes() == theirs.tobytes()
        assert theirs.flags.writeable
    assert os.listdir(tmp_path) == ["graph.npz"]
    back.save(tmp_path / "again.npz")
    assert (tmp_path / "again.npz").read_bytes() == (tmp_path / "graph.npz").read_bytes()
    assert (tmp_path / "graph.npz").stat().st_size > graph.indices.nbytes + graph.distances.nbytes  # uncompressed


def test_a_failed_save_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "graph.npz"
    _graph().save(path)
    before = path.read_bytes()

    def full(file: Any, **arrays: Any) -> None:
        file.write(b"half of it")
        raise OSError("no space left on device")

    monkeypatch.setattr(np, "savez", full)
    with pytest.raises(OSError, match="no space left"):
        _graph(k=2).save(path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["graph.npz"]


def _resave(path: Path, metric: str = "euclidean", **changes: Any) -> None:
    _graph(metric=metric).save(path)
    with np.load(path) as archive:
        arrays = {name: archive[name] for name in archive.files}
    arrays |= changes
    np.savez(path, **{name: array for name, array in arrays.items() if array is not None})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"about": None}, "about"),
        ({"indices": None}, "indices"),
        ({"about": np.array("{}")}, "format"),
        ({"about": np.array("[]")}, "not a whole KNNGraph file"),
        ({"about": np.array("{")}, "not a whole KNNGraph file"),
        ({"about": np.array('{"format": "other.Graph", "version": 1}')}, "its format is 'other.Graph'"),
        ({"about": np.array('{"format": "tonari.KNNGraph", "version": 2}')}, "version is 2, this release reads 1"),
        ({"indices": np.full((N, K), N, np.int32)}, "outside -1 to 29"),
        ({"indices": np.zeros((N, K), np.uint8)}, "got uint8"),
        ({"distances": np.zeros((N, 2), np.float32)}, "same non-empty shape"),
        ({"distances": np.array([None])}, "not a whole KNNGraph file"),
    ],
)
def test_load_refuses_other_contents(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    _resave(tmp_path / "graph.npz", **changes)
    with pytest.raises(ValueError, match=r"graph\.npz: not a whole KNNGraph file: ") as caught:
        KNNGraph.load(tmp_path / "graph.npz")
    assert message in str(caught.value)


def test_load_refuses_other_files(tmp_path: Path) -> None:
    path = tmp_path / "graph.npz"
    with pytest.raises(FileNotFoundError):
        KNNGraph.load(path)
    for content in (b"", b"text", b"PK\x03\x04", os.urandom(500), b"\x80\x04K\x01."):
        path.write_bytes(content)
        with pytest.raises(ValueError, match="not a whole KNNGraph file"):
            KNNGraph.load(path)
    with open(path, "wb") as file:
        np.save(file, np.zeros(3))
    with pytest.raises(ValueError, match="not a whole KNNGraph file"):
        KNNGraph.load(path)


def test_damage_never_passes(tmp_path: Path) -> None:
    path = tmp_path / "graph.npz"
    graph = _graph(checks.gaussian(6, 2), k=2)
    graph.save(path)
    whole = path.read_bytes()
    refused = tried = 0
    for place, byte in enumerate(whole):
        flips = [whole[:place] + bytes([byte ^ mask]) + whole[place + 1 :] for mask in (0x01, 0x55, 0x80)]
        for damaged in [whole[:place], *flips]:
            tried += 1
            path.write_bytes(damaged)
            try:
                back = KNNGraph.load(path)
            except ValueError:
                refused += 1
                continue
            # A byte that carries nothing, such as a date: then all that was saved is there.
            assert back.indices.tobytes() == graph.indices.tobytes()
            assert back.distances.tobytes() == graph.distances.tobytes()
            assert repr(back) == repr(graph)
    assert refused > 0.8 * tried


def test_recall_of_a_true_graph_is_one() -> None:
    points = checks.gaussian(N, 3)
    result = _graph(points).recall(points, sample=10, seed=1, threads=1)
    assert (result.by_index, result.by_distance, result.high) == (1.0, 1.0, 1.0)
    assert (result.rows, result.k) == (10, K)
    assert 0.7 < result.low < 1.0
