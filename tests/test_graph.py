"""The graph: what it refuses to be, what it exports, and that a file is whole or refused."""

from __future__ import annotations

import os
import sys
from dataclasses import FrozenInstanceError
from pathlib import Path
from typing import Any

import checks
import numpy as np
import pytest

from tonari.graph import KNNGraph
from tonari.reference import brute, pairwise

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
        (lambda i, d: (i[:-1], d), ValueError, r"alike and not empty, got \(29, 5\) and \(30, 5\)"),
        (lambda i, d: (i[:, 0], d[:, 0]), ValueError, "alike"),
        (lambda i, d: (i[:, :0], d[:, :0]), ValueError, "not empty"),
        (lambda i, d: (i.astype(np.uint32), d), TypeError, "got uint32 and float32"),
        (lambda i, d: (i, d.astype(np.float16)), TypeError, "got int32 and float16"),
        (lambda i, d: (np.where(i == i[4, 1], N, i), d), ValueError, "has an index that is not within -1 and 29"),
        (lambda i, d: (np.where(i == 0, -2, i), d), ValueError, "not within -1"),
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


def _resave(path: Path, **changes: Any) -> None:
    _graph().save(path)
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
        ({"indices": np.full((N, K), N, np.int32)}, "not within -1 and 29"),
        ({"indices": np.zeros((N, K), np.uint8)}, "got uint8"),
        ({"distances": np.zeros((N, 2), np.float32)}, "alike"),
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
