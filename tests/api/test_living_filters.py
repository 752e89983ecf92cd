"""Rules about ids: a changed Index finds the same points as a new one of the remaining points."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tonari
from tests.helpers import checks
from tests.helpers.device_rows import there
from tests.helpers.devices import needs_torch, on_gpu
from tonari.api import tuning
from tonari.metrics import BIT_METRICS

D, M = 3, 7
METHODS = ["auto", "exact", "kdtree"]
RULES = ["where", "one", "none", "mask", "bits", "lists", "rows", "same", "other", "all"]


def tied(rng: np.random.Generator, n: int) -> Any:
    """Make rows with few distinct values, so that there are duplicates and ties."""
    return rng.integers(0, 4, (n, D)).astype(np.float32) + np.float32(1000)


def changed(rng: np.random.Generator, n: int, place: Any = np.array, **given: Any) -> tuple[tonari.Index, Any]:
    """Make an Index of three segments, each with removed points and one without the last id; return all points ever
    added.
    """
    points = tied(rng, n)
    first, last = 5 * n // 8, 7 * n // 8
    index = tonari.Index(place(points[:first]), **given)
    for part in (points[first:last], points[last:]):
        index.add(place(part))
    index.remove([0, n // 3, first + 1, n - 2, n - 1])
    assert len(index._state.parts) == 3
    assert all(len(part.gone) for part in index._state.parts)
    return index, points


def rules(kind: str, rng: np.random.Generator, ids: Any, total: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return rules for all ids, and the same rules for the rows of a new Index."""
    where, mask = rng.random(total) < 0.4, rng.random((M, total)) < 0.3
    where[0] = mask[:, 0] = True  # a rule of a removed point
    if kind == "one":
        where[:] = False
        where[ids[len(ids) // 2]] = True
    if kind == "none":
        where[ids] = False
    lists = [rng.permutation(total)[: rng.integers(0, total)] for _ in range(M)]
    row_of = np.full(total, -1)
    row_of[ids] = np.arange(len(ids))
    kept = [row_of[one][row_of[one] >= 0] for one in lists]
    groups = {"query_groups": rng.integers(0, 4, M)}
    points = rng.integers(0, 4, total)
    here: Any = {"where": {"where": where}, "lists": {"exclude": lists}}
    anew: Any = {"where": {"where": where[ids]}, "lists": {"exclude": kept}}
    here["groups"], anew["groups"] = groups | {"point_groups": points}, groups | {"point_groups": points[ids]}
    if kind in ("where", "one", "none"):
        return here["where"], anew["where"]
    if kind == "mask":
        return {"where": mask}, {"where": mask[:, ids]}
    if kind == "bits":
        return {"where": np.packbits(mask, axis=1, bitorder="little")}, {"where": mask[:, ids]}
    if kind == "lists":
        return here["lists"], anew["lists"]
    if kind == "rows":
        indptr = np.concatenate([[0], np.cumsum([len(one) for one in lists])])
        return {"exclude": (indptr, np.concatenate(lists))}, anew["lists"]
    if kind in ("same", "other"):
        return here["groups"] | {"groups": kind}, anew["groups"] | {"groups": kind}
    one, other = (args["where"] | args["lists"] | args["groups"] | {"groups": "other"} for args in (here, anew))
    return one, other


def bits_of(rows: Any) -> Any:
    """Pack rows of numbers into rows of bits; rows of bits stay as they are."""
    return rows if rows.dtype == np.uint8 else np.ascontiguousarray(rows).view(np.uint8)


def here_one(x: Any) -> Any:
    return x if isinstance(x, np.ndarray) else x.cpu().numpy()


def check(index: tonari.Index, points: Any, kind: str, ks: list[int], place: Any, **given: Any) -> None:
    rng = np.random.default_rng(5)
    ids, queries = index.ids, tied(rng, M)
    queries = bits_of(queries) if points.dtype == np.uint8 else queries
    assert index.next_id == len(points)
    mine, theirs = rules(kind, rng, ids, len(points))
    anew = tonari.Index(points[ids], **given)
    for k in ks:
        truth = anew.search(queries, k, **theirs)
        found = index.search(place(queries), k, **mine)
        assert here_one(found.distances).tobytes() == truth.distances.tobytes()
        named = np.where(truth.indices < 0, -1, ids[truth.indices]).astype(np.int32)
        assert here_one(found.indices).tobytes() == named.tobytes()
    asked = {"min_similarity" if index.metric == "inner_product" else "radius": 1.0}
    for most in (None, 2, 70):
        truth = anew.radius_search(queries, **asked, max_neighbors=most, **theirs)
        got = index.radius_search(place(queries), **asked, max_neighbors=most, **mine)
        assert here_one(got.indptr).tolist() == truth.indptr.tolist()
        assert here_one(got.indices).tolist() == ids[truth.indices].tolist()
        assert here_one(got.distances).tobytes() == truth.distances.tobytes()
    counts = index.radius_count(place(queries), **asked, **mine)
    assert here_one(counts).tolist() == anew.radius_count(queries, **asked, **theirs).tolist()


@pytest.mark.parametrize("kind", RULES)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("metric", ["euclidean", "inner_product"])
def test_rules_are_about_ids(kind: str, method: str, metric: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if method == "kdtree" and metric == "inner_product":
        pytest.skip("no tree bounds inner products")
    monkeypatch.setattr(tuning, "SMALL", 2)
    given = {"method": method, "metric": metric}
    index, points = changed(np.random.default_rng(4), 200, **given)
    check(index, points, kind, [1, 7, len(index)], np.array, **given)
    index.compact()
    check(index, points, kind, [7], np.array, **given)


@pytest.mark.parametrize("kind", RULES)
def test_of_many_points_too(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Enough points that forbidden ones are dropped afterwards, and groups are searched separately."""
    monkeypatch.setattr(tuning, "SMALL", 2)
    index, points = changed(np.random.default_rng(6), 20_000, method="exact")
    check(index, points, kind, [5], np.array, method="exact")


@pytest.mark.parametrize("kind", RULES)
@pytest.mark.parametrize("metric", BIT_METRICS)
def test_of_rows_of_bits(kind: str, metric: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "SMALL", 2)
    index, points = changed(np.random.default_rng(4), 200, bits_of, metric=metric)
    check(index, bits_of(points), kind, [1, 7, len(index)], bits_of, metric=metric)
    index.compact()
    check(index, bits_of(points), kind, [7], bits_of, metric=metric)


@pytest.mark.parametrize("metric", ["euclidean", *BIT_METRICS])
def test_an_index_without_points_checks_rules_and_finds_nothing(metric: str) -> None:
    points = bits_of(tied(np.random.default_rng(0), 4)) if metric in BIT_METRICS else tied(np.random.default_rng(0), 4)
    index = tonari.Index(points, metric=metric)
    index.remove(index.ids)
    found = index.radius_search(points[:2], 1.0, where=np.ones(4, bool))
    assert (found.indptr.tolist(), len(found.indices)) == ([0, 0, 0], 0)
    assert index.radius_count(points[:2], 1.0, exclude=[[0], []]).tolist() == [0, 0]
    with pytest.raises(ValueError, match=r"where: expected shape \(4,\)"):
        index.radius_search(points[:2], 1.0, where=np.ones(3, bool))


@needs_torch
@pytest.mark.usefixtures("cpu_for_cuda")
def test_on_a_device_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "SMALL", 2)
    rng = np.random.default_rng(4)
    points = tied(rng, 8)
    index = tonari.Index(there(points[:6]), device="cuda", method="exact")
    index.add(there(points[6:]))
    index.remove([2])
    assert len(index._state.parts) == 2
    where = rng.random(8) < 0.6
    found = index.search(there(points[:2]), 3, where=where, exclude=[[7], []])
    truth = tonari.search(points[:2], points, 3, where=where & (np.arange(8) != 2), exclude=[[7], []])
    assert here_one(found.distances).tobytes() == truth.distances.tobytes()
    assert here_one(found.indices).tobytes() == truth.indices.tobytes()


@on_gpu
@pytest.mark.parametrize("kind", RULES)
@pytest.mark.parametrize("method", METHODS)
def test_on_a_card_too(kind: str, method: str) -> None:
    index, points = changed(np.random.default_rng(4), 50_000, there, device="cuda", method=method)
    check(index, points, kind, [1, 20], there)


@on_gpu
@pytest.mark.parametrize("kind", RULES)
@pytest.mark.parametrize("metric", BIT_METRICS)
def test_rows_of_bits_on_a_card(kind: str, metric: str) -> None:
    def place(rows: Any) -> Any:
        return there(bits_of(rows))

    index, points = changed(np.random.default_rng(4), 50_000, place, device="cuda", metric=metric)
    check(index, bits_of(points), kind, [1, 20], place, metric=metric)


def test_what_is_missing_does_not_go_before_what_is_infinitely_far(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "SMALL", 1)
    far = np.full((8, D), 3e38, np.float32)
    index = tonari.Index(far[:4], method="exact")
    index.add(far[:2])
    index.add(-far[:1])
    index.remove([1])
    with pytest.raises(ValueError, match="row 0 has a euclidean value of inf"):  # of a point, not of a missing one
        index.search(-far[:1], 3, where=[True, True, False, False, False, True, False])


def test_the_number_of_ids_is_asked_for(tmp_path: Path) -> None:
    index = tonari.Index(checks.gaussian(10, D))
    query = checks.gaussian(1, D, 1)
    index.remove([9])
    expected = r"where: expected shape \(10,\) or \(1, 10\) for 1 queries and 10 ids given so far \(Index.next_id\)"
    for again in range(3):
        with pytest.raises(ValueError, match=expected):
            index.search(query, 1, where=np.ones(9, bool))
        with pytest.raises(ValueError, match=expected):
            index.radius_count(query, 1.0, where=np.ones(9, bool))
        with pytest.raises(ValueError, match=r"point_groups: expected shape \(10,\), got \(9,\)"):
            index.search(query, 1, query_groups=[0], point_groups=np.zeros(9, int))
        with pytest.raises(ValueError, match="query 0 has 10, expected numbers of points, 0 to 9"):
            index.search(query, 1, exclude=[[10]])
        with pytest.raises(ValueError, match="k=10: the largest k is 9"):
            index.search(query, 10, where=np.ones(10, bool))
        assert index.search(query, 9, where=np.ones(10, bool)).indices.max() == 8
        if again == 0:
            index.compact()
            assert index.ids_are_rows
        else:
            index.save(tmp_path / "saved.index")
            index = tonari.Index.load(tmp_path / "saved.index")


def test_a_graph_of_the_points_that_are_left_takes_the_rules_of_their_ids(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "SMALL", 2)
    index, _ = changed(np.random.default_rng(4), 2000)
    index.add(checks.gaussian(500, D))
    index.remove(index.ids[:1990])
    where = np.random.default_rng(5).random(index.next_id) < 0.5
    allowed = where[index.ids]
    graph = tonari.knn_graph(index.points, 4, where=allowed, include_self=True)
    found = index.search(index.points[allowed], 4, where=where)
    assert len(found.indices) > 100
    assert np.array_equal(index.ids[graph.indices[allowed]], found.indices)
    assert np.array_equal(graph.distances[allowed], found.distances)
