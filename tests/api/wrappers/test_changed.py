"""Public functions with metrics of changed rows, compared with the reference for rows that the test changes itself."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tonari
from tests.helpers import checks
from tests.helpers.checks import Array, assert_same_neighbors
from tests.helpers.devices import needs_torch, on_gpu
from tonari.core.errors import Unsupported
from tonari.core.results.neighbors import Neighbors
from tonari.graph.exports.embeddings.searcher import searcher_of
from tonari.metrics import METRICS
from tonari.metrics.definitions import great_circle, unit_vectors
from tonari.metrics.reference import brute, brute_within, pairwise
from tonari.metrics.transforms.change import change_for, change_of, first_outside

N, K = 60, 7
WEIGHTS = [2.0, 0.0, 1.0, 1e-12, 1e12]
POWERS: list[dict[str, Any]] = [{"metric": f"minkowski:{p}"} for p in (0.5, 1.5, 3, 4)]
MAPS: list[dict[str, Any]] = [
    {"metric": "mahalanobis", "VI": [[2.0, -0.7], [-0.7, 0.3]]},
    {"metric": "mahalanobis", "covariance": [[2.0, 0.7], [0.7, 0.3]]},
    {"metric": "seuclidean", "V": [0.3, 7.0]},
    {"metric": "seuclidean", "V": [1.0, 1.0]},
    {"metric": "sqeuclidean", "transform": [[1.0, 2.0, 0.1], [-1.0, 1e-3, 0.0]]},
    {"metric": "hellinger"},
    {"metric": "braycurtis"},
]
SCALES = {"euclidean": np.sqrt, "sqeuclidean": np.sqrt, "l1": np.positive, "linf": np.sign}


def anywhere(rng: np.random.Generator) -> Array:
    return np.stack([np.arcsin(rng.uniform(-1, 1, N)), rng.uniform(-np.pi, np.pi, N)], axis=1)


def poles(rng: np.random.Generator) -> Array:
    return np.stack([rng.choice([-np.pi / 2, np.pi / 2], N), rng.uniform(-np.pi, np.pi, N)], axis=1)


def date_line(rng: np.random.Generator) -> Array:
    return np.stack([rng.normal(0, 1e-9, N), rng.choice([-np.pi, np.pi, 3 * np.pi], N)], axis=1)


def antipodes(rng: np.random.Generator) -> Array:
    here = anywhere(rng)[: N // 2]
    return np.concatenate([here, here * [-1, 1] + [0, np.pi]])


def copies(rng: np.random.Generator) -> Array:
    return np.repeat(anywhere(rng)[:6], N // 6, axis=0)


def one_street(rng: np.random.Generator) -> Array:
    return np.array([0.9, 0.1]) + rng.normal(0, 1e-12, (N, 2))


POSITIONS = [anywhere, poles, date_line, antipodes, copies, one_street]


def positions(maker: Any) -> tuple[Array, Array]:
    """Return latitudes and longitudes, and their unit vectors."""
    rows = maker(np.random.default_rng(0))
    return rows, np.ascontiguousarray(unit_vectors(*rows.T).T)


def rows_of(given: dict[str, Any]) -> Array:
    """Make positions or, for metrics of counts, nonnegative rows that sum to one."""
    rows, _ = positions(anywhere)
    if given["metric"] in ("hellinger", "braycurtis"):
        rows = np.abs(rows)
        rows /= rows.sum(axis=1, keepdims=True)
    return rows


def same_matrix(one: Any, other: Any) -> bool:
    return one is other is None or (one is not None and other is not None and np.array_equal(one, other))


def finish(found: Any) -> Any:
    return found._replace(distances=great_circle(found.distances))


@pytest.mark.parametrize("maker", POSITIONS)
@pytest.mark.parametrize("method", ["exact", "kdtree"])
@pytest.mark.parametrize("k", [1, K, N])
def test_haversine_is_the_order_of_chords(maker: Any, method: str, k: int) -> None:
    rows, vectors = positions(maker)
    truth = finish(brute(vectors[:20], vectors, k))
    assert_same_neighbors(tonari.search(rows[:20], rows, k, metric="haversine", method=method), truth)
    index = tonari.Index(rows, metric="Haversine", method=method)
    assert_same_neighbors(index.search(rows[:20], k), truth)


@pytest.mark.parametrize("maker", [anywhere, date_line])
def test_haversine_is_that_of_scikit_learn(maker: Any) -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    rows, _ = positions(maker)
    found = tonari.search(rows, rows, K, metric="haversine").distances
    np.testing.assert_allclose(found, np.sort(metrics.pairwise.haversine_distances(rows), axis=1)[:, :K], atol=1e-15)


@pytest.mark.parametrize("maker", POSITIONS)
@pytest.mark.parametrize("closed", [True, False])
def test_a_radius_is_compared_with_the_angle_that_is_returned(maker: Any, closed: bool) -> None:
    rows, vectors = positions(maker)
    angles = brute(vectors, vectors, N)
    order = np.argsort(angles.indices, axis=1)
    table = np.take_along_axis(great_circle(angles.distances), order, axis=1)
    limits = np.where(np.arange(N) % 3 == 0, table[0], np.where(np.arange(N) % 3 == 1, np.nextafter(table[0], 4), 0.0))
    given: dict[str, Any] = {"metric": "haversine", "closed": closed}
    inside = table <= limits[:, None] if closed else table < limits[:, None]
    found = tonari.radius_search(rows, rows, limits, **given)
    assert np.diff(found.indptr).tolist() == inside.sum(axis=1).tolist()
    assert tonari.radius_count(rows, rows, limits, **given).tolist() == inside.sum(axis=1).tolist()
    for i in range(N):
        here = slice(*found.indptr[i : i + 2])
        assert sorted(found.indices[here].tolist()) == np.flatnonzero(inside[i]).tolist()
        assert found.distances[here].tobytes() == table[i][found.indices[here]].tobytes()
    index = tonari.Index(rows, metric="haversine")
    again = index.radius_search(rows, limits, closed=closed)
    assert [part.tobytes() for part in again] == [part.tobytes() for part in found]
    one = float(table[0, N // 2])
    left, right, distances = tonari.pairs(rows, one, **given)
    within = np.triu(table <= one if closed else table < one, 1)
    assert sorted(zip(left, right, strict=True)) == list(zip(*np.nonzero(within), strict=True))
    assert distances.tobytes() == table[left, right].tobytes()
    assert tonari.radius_graph(rows, one, **given).indptr[-1] == 2 * len(left)


def hostile(maker: str, dtype: Any) -> Array:
    """Make rows with ties, zeros, offsets and far clusters, and some rows beyond the range of screens."""
    rows = checks.HOSTILE[maker](N, 5, 0).astype(dtype)
    rows[7] = 0
    rows[8] = rows[9]
    rows[-1] *= 50
    return rows


@pytest.mark.parametrize("given", POWERS, ids=str)
@pytest.mark.parametrize("maker", checks.HOSTILE)
@pytest.mark.parametrize("method", ["exact", "kdtree"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_minkowski_is_the_order_of_sums_of_powers(given: Any, maker: str, method: str, dtype: Any) -> None:
    change, rows = change_of(**given), hostile(maker, dtype)
    assert change is not None
    wide = rows.astype(np.float64)
    sums = brute(wide, wide, K, change.base)
    truth = sums._replace(distances=change.values(sums.distances))
    assert_same_neighbors(tonari.search(rows, rows, K, method=method, **given), truth)
    assert_same_neighbors(tonari.Index(rows, method=method, **given).search(rows, K), truth)
    limits = np.ascontiguousarray(sums.distances[:, 3])
    inside = brute_within(wide, wide, limits, change.base)
    found = tonari.radius_search(rows, rows, change.values(limits), method=method, **given)
    assert (found.distances <= change.values(limits).repeat(np.diff(found.indptr))).all()
    # A sum that is larger by one unit in the last place may have the same root.
    more = brute_within(wide, wide, first_outside(change.finish, change.values(limits)), change.base)
    nearer = more.distances < first_outside(change.finish, change.values(limits)).repeat(np.diff(more.indptr))
    assert found.indices.tolist() == more.indices[nearer].tolist()
    assert found.distances.tobytes() == change.values(more.distances[nearer]).tobytes()
    assert len(inside.indices) <= len(found.indices)


@pytest.mark.parametrize("p", [0.5, 1, 1.5, 2, 3, 4, np.inf])
@pytest.mark.parametrize("maker", ["gaussian", "duplicates", "tight_far_clusters", "one_hot"])
def test_minkowski_is_that_of_scipy(p: float, maker: str) -> None:
    distance = pytest.importorskip("scipy.spatial.distance")
    rows = checks.HOSTILE[maker](N, 5, 0).astype(np.float64)
    name = {"metric": "chebyshev"} if p == np.inf else {"metric": "minkowski", "p": p}
    found = tonari.search(rows, rows, K, metric=f"minkowski:{p}")
    np.testing.assert_allclose(found.distances, np.sort(distance.cdist(rows, rows, **name), axis=1)[:, :K], 1e-13)


@pytest.mark.parametrize("given", POWERS, ids=str)
def test_values_at_the_limit(given: Any) -> None:
    """The largest accepted values, among ordinary ones; every public function refuses the next larger number."""
    change = change_of(**given)
    assert change is not None
    largest = change.prepare.largest  # type: ignore[attr-defined]
    rows = checks.gaussian(N, 3, dtype=np.float64)
    rows[3], rows[4], rows[5, 0] = largest, -largest, largest
    sums = brute(rows, rows, K, change.base)
    truth = sums._replace(distances=change.values(sums.distances))
    assert np.isfinite(truth.distances).all()
    for method in ("exact", "kdtree"):
        assert_same_neighbors(tonari.search(rows, rows, K, method=method, **given), truth)
    rows[6, 1] = np.nextafter(largest, np.inf)
    index = tonari.Index(rows[:6], **given)
    for verb in (
        lambda: tonari.search(rows[:2], rows, 1, **given),
        lambda: tonari.knn_graph(rows, 1, **given),
        lambda: index.search(rows, 1),
        lambda: index.add(rows),
        lambda: tonari.pairs(rows, 1.0, **given),
    ):
        with pytest.raises(ValueError, match="row 6 has a value"):
            verb()


@pytest.mark.parametrize("given", POWERS, ids=str)
def test_a_large_minkowski_graph(given: Any) -> None:
    """The screen, NN-Descent and the tree agree with each other and with the reference."""
    rows = checks.gaussian(3000, 12)
    rows[::50] = rows[1::50]
    rows[17] *= 40
    change = change_of(**given)
    assert change is not None
    own, wide = np.arange(3000), rows.astype(np.float64)
    sums = brute(wide[:300], wide, K, change.base, self_ids=own[:300])
    truth = sums._replace(distances=change.values(sums.distances))
    for method in ("exact", "kdtree"):
        graph = tonari.knn_graph(rows, K, method=method, **given)
        assert_same_neighbors(Neighbors(graph.distances[:300].copy(), graph.indices[:300].copy()), truth)
    near = tonari.knn_graph(rows, K, method="nn-descent", recall=0.95, **given)
    assert near.recall(rows).by_distance > 0.9
    assert near.metric == given["metric"]


@pytest.mark.parametrize("metric", SCALES)
@pytest.mark.parametrize("maker", checks.HOSTILE)
@pytest.mark.parametrize("method", ["exact", "kdtree"])
def test_weights_search_the_scaled_rows(metric: str, maker: str, method: str) -> None:
    rows = checks.HOSTILE[maker](N, 5, 0)
    scaled = (rows.astype(np.float64) * SCALES[metric](np.array(WEIGHTS)))[:, [0, 2, 3, 4]]
    given: dict[str, Any] = {"metric": metric, "weights": WEIGHTS, "method": method}
    truth = brute(scaled[:20], scaled, K, metric)
    assert_same_neighbors(tonari.search(rows[:20], rows, K, **given), truth)
    assert_same_neighbors(tonari.Index(rows, **given).search(rows[:20], K), truth)
    limits = np.ascontiguousarray(truth.distances[:, 3])
    expected = brute_within(scaled[:20], scaled, limits, metric)
    found = tonari.radius_search(rows[:20], rows, limits, **given)
    assert [part.tobytes() for part in found] == [part.tobytes() for part in expected]


@pytest.mark.parametrize("metric", SCALES)
def test_weights_are_those_of_scipy(metric: str) -> None:
    distance = pytest.importorskip("scipy.spatial.distance")
    rows, weights = checks.gaussian(N, 4), [2.0, 0.0, 0.5, 1e-3]
    name = {"l1": "cityblock", "linf": "chebyshev"}.get(metric, metric)
    wide = rows.astype(np.float64)
    expected = np.sort(distance.cdist(wide, wide, name, w=weights), axis=1)[:, :K]
    np.testing.assert_allclose(tonari.search(rows, rows, K, metric=metric, weights=weights).distances, expected, 1e-14)


@pytest.mark.parametrize("metric", SCALES)
@pytest.mark.parametrize("maker", checks.HOSTILE)
def test_weights_of_one_change_no_bit(metric: str, maker: str) -> None:
    rows = checks.in_range(checks.HOSTILE[maker](N, 5, 0), metric)
    weighted = tonari.search(rows, rows, K, metric=metric, weights=np.ones(5))
    assert_same_neighbors(weighted, tonari.search(rows, rows, K, metric=metric))


def test_one_column() -> None:
    rows = checks.gaussian(N, 1)
    scaled = rows.astype(np.float64) * 3.0
    assert_same_neighbors(tonari.search(rows, rows, N, metric="l1", weights=[3]), brute(scaled, scaled, N, "l1"))
    assert_same_neighbors(tonari.search(np.c_[rows, rows * 9], rows.repeat(2, 1), N, metric="l1", weights=[3, 0]),
                          brute(scaled, scaled, N, "l1"))  # fmt: skip


@pytest.mark.parametrize("given", [{"metric": "haversine"}, {"metric": "l1", "weights": [2.0, 0.5]}, *POWERS, *MAPS])
def test_graphs_files_and_copies(given: dict[str, Any], tmp_path: Path) -> None:
    rows = rows_of(given)
    change = change_for(**given)
    assert change is not None
    vectors = change.rows(rows, "points")
    truth = brute(vectors, vectors, K, change.base, self_ids=np.arange(N))
    truth = truth._replace(distances=change.values(truth.distances))
    graph = tonari.knn_graph(rows, K, **given)
    assert_same_neighbors(Neighbors(graph.distances, graph.indices), truth)
    assert tonari.kth_distance(rows, K, **given).tobytes() == truth.distances[:, -1].tobytes()
    graph.save(tmp_path / "graph.npz")
    for made in (graph, tonari.KNNGraph.load(tmp_path / "graph.npz"), graph.trim(3), graph.permute(np.arange(N))):
        assert (made.metric, made.weights) == (given["metric"], change.weights)
        assert same_matrix(made.transform, change.transform)
        assert made.recall(rows).by_index == 1
    own = tonari.knn_graph(rows, 3, include_self=True, **given)
    assert own.indices[:, 0].tolist() == list(range(N))
    assert (own.distances[:, 0] == 0).all()
    assert graph.add(rows, rows[:3]).recall(np.concatenate([rows, rows[:3]])).by_index == 1
    index = tonari.Index(rows, **given)
    index.save(tmp_path / "index.npz")
    found = index.search(rows[:9], K)
    for again in (pickle.loads(pickle.dumps(index)), tonari.Index.load(tmp_path / "index.npz")):
        assert (again.metric, again.weights) == (index.metric, index.weights)
        assert same_matrix(again.transform, change.transform)
        assert repr(again) == repr(index)
        assert again.points.tobytes() == rows.tobytes()
        assert_same_neighbors(again.search(rows[:9], K), found)
    parts = list(index.search_chunks(iter([rows[:4], rows[:0], rows[4:9]]), K))
    assert_same_neighbors(Neighbors(*(np.concatenate(both) for both in zip(*parts, strict=True))), found)
    file = tonari.search_to_file(rows[:9], rows, K, tmp_path / "found.ibin", **given)
    assert (tonari.io.read_ground_truth(file).indices == found.indices).all()


@pytest.mark.parametrize("given", [{"metric": "haversine"}, {"metric": "l1", "weights": [2.0, 0.5]}, *POWERS, *MAPS])
def test_filters(given: dict[str, Any]) -> None:
    rows = rows_of(given)
    allowed = np.arange(N) % 10 == 0
    found = tonari.search(rows[:9], rows, K, where=allowed, **given)
    among = tonari.search(rows[:9], rows[allowed], 6, **given)
    assert found.distances[:, :6].tobytes() == among.distances.tobytes()
    assert (found.indices[:, :6] == 10 * among.indices).all()
    assert (found.indices[:, 6] == -1).all()
    assert np.isinf(found.distances[:, 6]).all()
    assert_same_neighbors(tonari.Index(rows, **given).search(rows[:9], K, where=allowed), found)
    batch = np.arange(N) % 4
    graph = tonari.knn_graph(rows, 3, batch=batch, **given)
    assert (batch[graph.indices] == batch[:, None]).all()
    assert graph.metric == given["metric"]


@pytest.mark.parametrize("metric", ["haversine", "minkowski:3", "hellinger", "braycurtis"])
def test_pairs_of_finished_values_have_no_file(metric: str, tmp_path: Path) -> None:
    rows = rows_of({"metric": metric})
    with pytest.raises(
        Unsupported, match=r"leave out=, or pass (the )?(unit vectors|rows|square roots).*, with metric="
    ):
        tonari.pairs(rows, 0.1, metric=metric, out=tmp_path / "pairs.npy")


def test_a_resumed_search_has_the_same_weights(tmp_path: Path) -> None:
    from tonari.streams.journal import search_facts

    rows = checks.gaussian(N, 2)
    facts = [search_facts(tonari.Index(rows, metric="l1", weights=weights), 9, 3) for weights in (None, [2, 1], [1, 2])]
    assert len({str(each.get("weights")) for each in facts}) == 3
    given = [{"transform": [[1.0], [2.0]]}, {"transform": [[2.0], [1.0]]}, {"transform": [[1.0, 2.0], [0.0, 1.0]]}]
    facts = [search_facts(tonari.Index(rows, **each), 9, 3) for each in given]
    assert len({str(each["transform"]) for each in facts}) == 3


def test_no_queries_have_distances_in_float64_too() -> None:
    rows = checks.gaussian(N, 2)
    index = tonari.Index(rows, metric="l1", weights=[2, 1])
    (found,) = index.search_chunks(iter([rows[:0]]), 3)
    (within,) = index.radius_chunks(iter([rows[:0]]), 1.0)
    assert found.distances.dtype == within.distances.dtype == index.search(rows, 3).distances.dtype == np.float64


def plain_product(rows: Array, matrix: Any) -> Array:
    """Multiply rows by a matrix in Python numbers, and add in the order of the lanes."""
    columns = np.array(matrix, np.float64).T
    return pairwise(rows.astype(np.float64), columns, "inner_product")


@pytest.mark.parametrize("maker", checks.HOSTILE)
@pytest.mark.parametrize("method", ["exact", "kdtree"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_matrix_searches_the_rows_times_it(maker: str, method: str, dtype: Any) -> None:
    rows, rng = hostile(maker, dtype), np.random.default_rng(1)
    matrix = rng.standard_normal((5, 3))
    matrix[2] = 0
    given: dict[str, Any] = {"transform": matrix, "method": method}
    made = plain_product(rows, matrix)
    truth = brute(made[:20], made, K)
    assert_same_neighbors(tonari.search(rows[:20], rows, K, **given), truth)
    index = tonari.Index(rows[:-9], **given)
    index.add(rows[-9:])
    assert_same_neighbors(index.search(rows[:20], K), truth)
    limits = np.ascontiguousarray(truth.distances[:, 3])
    expected = brute_within(made[:20], made, limits)
    found = tonari.radius_search(rows[:20], rows, limits, **given)
    assert [part.tobytes() for part in found] == [part.tobytes() for part in expected]
    assert tonari.radius_count(rows[:20], rows, limits, **given).tolist() == np.diff(expected.indptr).tolist()


@pytest.mark.parametrize("metric", METRICS)
def test_every_metric_of_numbers_takes_a_matrix(metric: str) -> None:
    rows, matrix = np.abs(checks.gaussian(N, 4)), np.abs(checks.gaussian(4, 3, 1))
    made = plain_product(rows, matrix)
    assert_same_neighbors(
        tonari.search(rows[:9], rows, K, metric=metric, transform=matrix),
        brute(made[:9], made, K, metric),
        metric=metric,
    )


def test_maps_are_those_of_scipy() -> None:
    distance = pytest.importorskip("scipy.spatial.distance")
    rows = checks.gaussian(N, 5, dtype=np.float64) * [1.0, 20.0, 0.01, 5.0, 1.0] + 3
    covariance, variances = np.cov(rows.T), rows.var(axis=0, ddof=1)
    inverse = np.linalg.inv(covariance)
    for given, theirs in (
        ({"metric": "mahalanobis", "VI": inverse}, {"metric": "mahalanobis", "VI": inverse}),
        ({"metric": "mahalanobis", "covariance": covariance}, {"metric": "mahalanobis", "VI": inverse}),
        ({"metric": "seuclidean", "V": variances}, {"metric": "seuclidean", "V": variances}),
    ):
        expected = np.sort(distance.cdist(rows, rows, **theirs), axis=1)[:, :K]
        np.testing.assert_allclose(tonari.search(rows, rows, K, **given).distances, expected, 1e-11, 1e-12)
    shares = np.abs(rows) / np.abs(rows).sum(axis=1, keepdims=True)
    expected = np.sort(distance.cdist(shares, shares, "braycurtis"), axis=1)[:, :K]
    np.testing.assert_allclose(tonari.search(shares, shares, K, metric="braycurtis").distances, expected, atol=1e-14)


def test_no_distance_of_equal_rows_is_above_zero() -> None:
    rows = checks.gaussian(N, 5).repeat(2, axis=0)
    shares = np.abs(rows) / np.abs(rows).sum(axis=1, keepdims=True)
    for given, x in (
        ({"metric": "mahalanobis", "covariance": np.cov(rows.T)}, rows),
        ({"metric": "seuclidean", "V": rows.var(axis=0)}, rows),
        ({"metric": "hellinger"}, shares),
        ({"metric": "braycurtis"}, shares),
    ):
        found = tonari.knn_graph(x, 1, **given)
        assert (found.distances == 0).all()
        assert (found.indices[:, 0] == np.arange(2 * N) ^ 1).all()


def test_every_verb_takes_a_matrix() -> None:
    rows = checks.gaussian(N, 3)
    given: dict[str, Any] = {"metric": "mahalanobis", "VI": np.diag([4.0, 0.25, 9.0])}
    scaled = rows.astype(np.float64)[:, [2, 0, 1]] * [3.0, 2.0, 0.5]  # the largest pivot first
    left, right, distances = tonari.pairs(rows, 1.5, **given)
    assert [part.tobytes() for part in tonari.pairs(scaled, 1.5)] == [x.tobytes() for x in (left, right, distances)]
    ours, theirs = (tonari.mutual_reachability_tree(x, 3, **how) for x, how in ((rows, given), (scaled, {})))
    assert ours.edges.tolist() == theirs.edges.tolist()
    assert tonari.radius_graph(rows, 1.5, **given).indices.tolist() == tonari.radius_graph(scaled, 1.5).indices.tolist()
    graph = tonari.knn_graph(rows, 3, **given)
    assert tonari.verify(None, rows, graph.indices, graph.distances, **given).exact
    assert not tonari.verify(None, rows, graph.indices, metric="mahalanobis", VI=np.diag([1.0, 0.25, 90.0])).exact
    index = tonari.Index(rows, metric="mahalanobis", transform=graph.transform)
    assert searcher_of(graph.lists, index).metric == "mahalanobis"
    with pytest.raises(ValueError, match="by another matrix than the graph"):
        searcher_of(graph.lists, tonari.Index(rows, metric="mahalanobis", VI=np.eye(3)))


def test_another_number_of_weights() -> None:
    rows = checks.gaussian(N, 3)
    with pytest.raises(ValueError, match="weights: has 2 numbers, but points have 3 columns"):
        tonari.search(rows, rows, 3, weights=[1, 2])


@needs_torch
def test_tensors_come_back_as_tensors() -> None:
    import torch

    rows, vectors = positions(anywhere)
    found = tonari.search(torch.from_numpy(rows), torch.from_numpy(rows), K, metric="haversine")
    assert isinstance(found.distances, torch.Tensor)
    assert_same_neighbors(Neighbors(*(part.numpy() for part in found)), finish(brute(vectors, vectors, K)))


@on_gpu
@pytest.mark.parametrize(
    "given", [{"metric": "haversine"}, {"metric": "euclidean", "weights": [2.0, 1e-3]}, *POWERS, *MAPS]
)
def test_on_cuda(given: dict[str, Any]) -> None:
    import torch

    rows = rows_of(given)
    truth, there = tonari.search(rows, rows, K, **given), torch.from_numpy(rows).cuda()
    for found in (tonari.search(there, there, K, **given), tonari.Index(there, **given).search(there, K)):
        assert found.distances.is_cuda
        assert_same_neighbors(Neighbors(*(part.cpu().numpy() for part in found)), truth)
    assert_same_neighbors(tonari.search(rows, rows, K, device="cuda", **given), truth)
    counts = tonari.radius_count(there, there, 0.3, **given)
    assert counts.tolist() == tonari.radius_count(rows, rows, 0.3, **given).tolist()


@needs_torch
def test_gradients_of_changed_rows_are_refused() -> None:
    import torch

    with pytest.raises(Unsupported, match=r"differentiable: .* points \* weights.sqrt\(\)"):
        tonari.knn_graph(torch.ones(3, 2), 1, weights=[2.0, 1.0], differentiable=True)
