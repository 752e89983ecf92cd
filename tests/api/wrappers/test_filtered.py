"""Searches with masks, lists and groups: the bits of plain NumPy among the allowed points."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tonari
from tests.helpers import checks
from tests.helpers.devices import needs_torch, on_gpu
from tests.helpers.filter_checks import Mask, assert_equal, cut, nearest_allowed
from tests.helpers.radius_checks import all_values
from tonari.filters import tuning
from tonari.filters.scope import Scope
from tonari.metrics import BIT_METRICS, METRICS, get_metric
from tonari.metrics.reference import brute

N, M, K = 230, 21, 7
MAKERS = ("gaussian", "duplicates", "tight_far_clusters", "offset_1e4")
RULES = ("shared", "mask", "bits", "lists", "csr", "same", "other", "mask+lists", "shared+same", "bits+other", "all")
KEPT = (0, 1, K - 1, K, N // 2, N)  # number of points that a mask allows


def data(maker: str, metric: str) -> tuple[checks.Array, checks.Array]:
    """Make queries and points; rows of bits are the bytes of rows of numbers."""
    points = checks.HOSTILE[maker](N, 5, 0)
    points = np.abs(points) if get_metric(metric).nonnegative else points
    queries = np.concatenate([points[:3], points[-M + 3 :] * 0.5]).astype(points.dtype)
    return (queries.view(np.uint8), points.view(np.uint8)) if get_metric(metric).bits else (queries, points)


def mask_of(seed: int, *shape: int) -> Mask:
    """Make a mask; its rows allow none, one, k - 1, k, half or all of the points, and so on in a cycle."""
    rng = np.random.default_rng(seed)
    made = np.zeros(shape, bool)
    for i, row in enumerate(made.reshape(-1, shape[-1])):
        row[rng.choice(shape[-1], KEPT[(i + seed) % len(KEPT)], replace=False)] = True
    return made


def rules_named(name: str, queries: Any, points: Any, metric: str, seed: int = 0) -> tuple[dict[str, Any], Mask]:
    """Return the arguments for a kind of rules, and the points that they allow."""
    rng, given, allowed = np.random.default_rng(seed), dict[str, Any](), np.ones((M, N), bool)
    near = brute(queries, points, N, metric).indices
    if "shared" in name or name == "all":
        given["where"] = mask_of(4 - (name == "all"), N)
        allowed &= given["where"]
    if "mask" in name or "bits" in name:
        made = mask_of(seed, M, N)
        given["where"] = made if "mask" in name else np.packbits(made, axis=1, bitorder="little")
        allowed &= made
    if "lists" in name or name in ("csr", "all"):
        lists = [near[i, : (0, 1, K, 3 * K, N - 1, N)[i % 6]].tolist() * (1 + i % 2) for i in range(M)]
        for i, own in enumerate(lists):
            allowed[i, own] = False
        flat = np.array([one for own in lists for one in own], np.int32)
        given["exclude"] = (np.cumsum([0, *map(len, lists)]), flat) if name == "csr" else lists
    if "same" in name or "other" in name or name == "all":
        groups = rng.choice([-5, 3, 3, 3, 8, 10**12], N)
        groups[:2] = 77, 78  # groups of a single point
        given["point_groups"], given["query_groups"] = groups, np.concatenate([groups[: M - 1], [-9]])
        equal = given["query_groups"][:, None] == groups
        given["groups"] = "same" if "same" in name else "other"
        allowed &= equal if "same" in name else ~equal
    return given, allowed


@pytest.mark.parametrize("metric", [*METRICS, *BIT_METRICS])
@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.parametrize("rules", RULES)
@pytest.mark.parametrize("few", [tuning.FEW_POINTS, 0])
def test_every_rule(metric: str, maker: str, rules: str, few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "FEW_POINTS", few)
    monkeypatch.setattr(tuning, "ROOM_BYTES", 80 * (few or 500))  # bytes of the pairs that are checked in one block
    queries, points = data(maker, metric)
    given, allowed = rules_named(rules, queries, points, metric)
    index = tonari.Index(points, metric=metric)
    for k in (1, K, N):
        truth = nearest_allowed(queries, points, k, allowed, metric)
        assert_equal(tonari.search(queries, points, k, metric=metric, **given), truth)
        assert_equal(index.search(queries, k, **given), truth)
    value = float(np.sort(all_values(queries, points, metric).distances)[M * N // 3])
    near = {"min_similarity": value} if get_metric(metric).descending else {"radius": value}
    inside = cut(tonari.radius_search(queries, points, metric=metric, **near), allowed)
    assert_equal(tonari.radius_search(queries, points, metric=metric, **near, **given), inside)
    assert_equal(index.radius_search(queries, **near, **given), inside)
    counts = np.diff(inside.indptr).tolist()
    assert tonari.radius_count(queries, points, metric=metric, **near, **given).tolist() == counts
    assert index.radius_count(queries, **near, **given).tolist() == counts
    for most in (3, 70):  # by a search, and by lists of all points
        some = tonari.radius_search(queries, points, metric=metric, **near, **given, max_neighbors=most)
        assert np.diff(some.indptr).tolist() == np.minimum(most, counts).tolist()
        assert some.indices[: some.indptr[1]].tolist() == inside.indices[: min(most, counts[0])].tolist()


@pytest.mark.parametrize("allowed", [0, 1, K - 1, K, N])
@pytest.mark.parametrize("method", ["auto", "exact", "kdtree"])
def test_a_mask_of_few_points(allowed: int, method: str) -> None:
    queries, points = data("gaussian", "euclidean")
    mask = np.zeros(N, bool)
    mask[np.random.default_rng(allowed).choice(N, allowed, replace=False)] = True
    truth = nearest_allowed(queries, points, K, np.broadcast_to(mask, (M, N)))
    assert_equal(tonari.search(queries, points, K, method=method, where=mask), truth)
    assert_equal(tonari.Index(points, method=method).search(queries, K, where=mask), truth)
    assert (truth.indices >= 0).sum(axis=1).tolist() == [min(K, allowed)] * M


@pytest.mark.parametrize("metric", ["euclidean", "inner_product", "cosine", "canberra", "hamming", "jaccard"])
@pytest.mark.parametrize("rules", ["where", "batch", "both", "none", "alone"])
@pytest.mark.parametrize("include_self", [False, True])
@pytest.mark.parametrize("large", [tuning.LARGE_PAIRS, 1])
def test_graphs(metric: str, rules: str, include_self: bool, large: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "LARGE_PAIRS", large)
    if large == 1:
        monkeypatch.setattr("tonari.filters.scope.Scope.listed_seconds", lambda *_: np.inf)  # each group by itself
    _, points = data("duplicates", metric)
    given, allowed = dict[str, Any](), ~np.eye(N, dtype=bool)
    if rules in ("where", "both", "none"):
        given["where"] = np.arange(N) % 3 == 0 if rules != "none" else np.zeros(N, bool)
        allowed &= given["where"]
    if rules in ("batch", "both", "alone"):
        given["batch"] = np.arange(N) if rules == "alone" else np.repeat([4, 1, 9, 2], [100, 1, 80, 49])
        allowed &= given["batch"][:, None] == given["batch"]
    truth = nearest_allowed(points, points, K, allowed, metric)
    graph = tonari.knn_graph(points, K + include_self, metric=metric, include_self=include_self, **given)
    assert_equal(tonari.Neighbors(graph.distances[:, include_self:], graph.indices[:, include_self:]), truth)
    assert not include_self or graph.indices[:, 0].tolist() == list(range(N))
    value = float(np.median(all_values(points, points, metric).distances))
    near = {"min_similarity": value} if get_metric(metric).descending else {"radius": value}
    whole = tonari.radius_graph(points, metric=metric, **near)
    assert_equal(tonari.radius_graph(points, metric=metric, **near, **given), cut(whole, allowed))
    if "batch" not in given:
        mask, pairs = given["where"], tonari.pairs(points, metric=metric, **near)
        kept = mask[pairs.left] & mask[pairs.right]
        some = tonari.pairs(points, metric=metric, **near, **given)
        assert_equal(some, tonari.Pairs(*(part[kept] for part in pairs)))


@pytest.mark.parametrize("large", [tuning.WITHIN_LARGE, 20, 0])
@pytest.mark.parametrize("rules", ["same", "shared+same", "shared", "other"])
def test_a_radius_for_each_query(large: int, rules: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "WITHIN_LARGE", large)  # points of a group that is searched separately
    monkeypatch.setattr(Scope, "allowed_by", lambda *_: None)
    queries, points = data("gaussian", "euclidean")
    given, allowed = rules_named(rules, queries, points, "euclidean")
    radii = np.linspace(0, 4, M)[np.random.default_rng(0).permutation(M)]
    truth = cut(tonari.radius_search(queries, points, radii), allowed)
    searched = list[int]()
    find = Scope.within
    monkeypatch.setattr(Scope, "within", lambda self, *rest: searched.append(self.n) or find(self, *rest))
    assert_equal(tonari.radius_search(queries, points, radii, **given), truth)
    assert bool(searched) == (large < 99 or "same" not in rules)


def test_large_groups_are_searched_by_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    points, seen, searched = checks.gaussian(6_000, 20), list[tuple[int, int]](), list[int]()
    batch = np.repeat([0, 1, 2], [4_000, 100, 1_900])
    find = Scope.nearest
    monkeypatch.setattr(Scope, "nearest", lambda self, *rest: searched.append(self.n) or find(self, *rest))
    graph = tonari.knn_graph(points, 3, batch=batch, threads=1, progress=lambda *pair: seen.append(pair))
    assert searched == [4_000, 1_900]
    assert seen[-1] == (6_000, 6_000)
    for group in range(3):
        rows = np.flatnonzero(batch == group)
        alone = tonari.knn_graph(points[rows], 3)
        assert graph.indices[rows].tolist() == rows[alone.indices].tolist()


@pytest.mark.parametrize("share", [0.0, 0.3])
def test_pairs_on_the_way_to_a_file(share: float, tmp_path: Any) -> None:
    points = checks.gaussian(N, 3)
    mask = np.random.default_rng(0).random(N) < share
    tonari.pairs(points, 1.0, where=mask, out=tmp_path / "pairs.npy")
    truth = tonari.pairs(points, 1.0)
    kept = mask[truth.left] & mask[truth.right]
    assert np.load(tmp_path / "pairs.npy")["right"].tolist() == truth.right[kept].tolist()


@pytest.mark.parametrize("share", [0.9, 0.5, 0.02])
@pytest.mark.parametrize("rule", ["where", "mask", "other", "same"])
def test_many_points(share: float, rule: str) -> None:
    """So many points that searches are cheaper than all exact values, and copies cheaper than more neighbours."""
    points, queries = checks.gaussian(9_000, 24), checks.gaussian(40, 24, 1)
    rng = np.random.default_rng(0)
    given: dict[str, Any] = {"where": rng.random(9_000) < share}
    allowed = np.broadcast_to(given["where"], (40, 9_000))
    if rule == "mask":
        given["where"] = allowed = rng.random((40, 9_000)) < share
    elif rule in ("other", "same"):
        groups = (rng.random(9_000) < share).astype(np.uint8)
        given = {"point_groups": groups, "query_groups": np.arange(40) % 3 // 2, "groups": rule}
        allowed = (given["query_groups"][:, None] == groups) == (rule == "same")
    truth = nearest_allowed(queries, points, 5, allowed)
    assert_equal(tonari.search(queries, points, 5, **given), truth)
    assert_equal(tonari.Index(points).search(queries, 5, **given), truth)


@pytest.mark.parametrize("metric", BIT_METRICS)
@pytest.mark.parametrize("share", [0.9, 0.02])
@pytest.mark.parametrize("rule", ["where", "mask", "other", "same", "exclude"])
def test_many_rows_of_bits(metric: str, share: float, rule: str) -> None:
    """So many points that searching more neighbours is cheaper than the values of all listed points; bool rows, too."""
    rng = np.random.default_rng(1)
    bools, asked = rng.random((9_000, 40)) < 0.3, rng.random((30, 40)) < 0.3
    points, queries = np.packbits(bools, axis=1), np.packbits(asked, axis=1)
    given: dict[str, Any] = {"where": rng.random(9_000) < share}
    allowed = np.broadcast_to(given["where"], (30, 9_000))
    if rule == "mask":
        given["where"] = allowed = rng.random((30, 9_000)) < share
    elif rule == "exclude":
        allowed = np.ones((30, 9_000), bool)
        given = {"exclude": [rng.choice(9_000, 40, replace=False) for _ in range(30)]}
        for row, own in zip(allowed, given["exclude"], strict=True):
            row[own] = False
    elif rule in ("other", "same"):
        groups = (rng.random(9_000) < share).astype(np.uint8)
        given = {"point_groups": groups, "query_groups": np.arange(30) % 3 // 2, "groups": rule}
        allowed = (given["query_groups"][:, None] == groups) == (rule == "same")
    truth = nearest_allowed(queries, points, 5, allowed, metric)
    assert_equal(tonari.search(queries, points, 5, metric=metric, **given), truth)
    assert_equal(tonari.search(asked, bools, 5, metric=metric, **given), truth)
    assert_equal(tonari.Index(points, metric=metric).search(queries, 5, **given), truth)


@pytest.mark.parametrize("dtype", ["float16", "float64", "uint8"])
def test_dtypes_strides_and_memory(dtype: str) -> None:
    points = (checks.gaussian(2 * N, 5) * 20 + 60).astype(dtype)[::2]
    points.flags.writeable = False
    mask = np.broadcast_to(np.arange(N) % 2 == 0, (M, N))
    truth = nearest_allowed(points[:M], points, K, mask)
    assert_equal(tonari.search(points[:M], points, K, where=mask[0], memory="8MB", threads=2), truth)
    assert_equal(tonari.search(points[:M], points, K, where=mask, memory="8MB"), truth)
    with pytest.raises(ValueError, match=r"memory=100 bytes: 115 allowed points, copied, take"):
        tonari.search(*(np.ascontiguousarray(rows) for rows in (points[:M], points)), K, where=mask[0], memory=100)


def test_values_of_points_that_nobody_may_find_are_not_looked_at() -> None:
    queries, points = data("gaussian", "euclidean")
    points, mask = points.copy(), np.arange(N) > 2
    points[1] = np.nan
    truth = nearest_allowed(queries, np.nan_to_num(points), K, np.broadcast_to(mask, (M, N)))
    assert_equal(tonari.search(queries, points, K, where=mask), truth)
    points[9] = np.inf
    with pytest.raises(ValueError, match="points: row 1 has"):
        tonari.search(queries, points, K, where=mask)
    with pytest.raises(ValueError, match="points: row 1 has"):
        tonari.search(queries, points, K, where=np.broadcast_to(mask, (M, N)))


def test_progress_counts_queries() -> None:
    queries, points = data("gaussian", "euclidean")
    for rules in ("mask", "csr", "same", "other", "shared+same"):
        seen: list[tuple[int, int]] = []
        given, _ = rules_named(rules, queries, points, "euclidean")
        tonari.search(queries, points, K, progress=lambda *pair, seen=seen: seen.append(pair), **given)
        assert seen[-1] == (M, M), rules


@needs_torch
def test_tensors() -> None:
    import torch

    queries, points = (torch.from_numpy(part) for part in data("gaussian", "euclidean"))
    mask = torch.arange(N) % 2 == 0
    found = tonari.search(queries, points, K, where=mask)
    assert isinstance(found.indices, torch.Tensor)
    truth = nearest_allowed(queries.numpy(), points.numpy(), K, np.broadcast_to(mask.numpy(), (M, N)))
    assert_equal(tonari.Neighbors(*(part.numpy() for part in found)), truth)
    graph = tonari.knn_graph(points, 2, batch=torch.arange(N) // 10)
    assert isinstance(graph.indices, torch.Tensor)


@on_gpu
@pytest.mark.parametrize("rules", RULES)
def test_every_rule_on_a_gpu(rules: str) -> None:
    import torch

    for metric in ("euclidean", "inner_product", "cosine", "linf", "hamming", "jaccard"):
        queries, points = data("duplicates", metric)
        given, allowed = rules_named(rules, queries, points, metric)
        truth = nearest_allowed(queries, points, K, allowed, metric)
        there = torch.from_numpy(queries).cuda(), torch.from_numpy(points).cuda()
        index = tonari.Index(there[1], metric=metric)
        for found in (tonari.search(*there, K, metric=metric, **given), index.search(there[0], K, **given)):
            assert found.indices.is_cuda
            assert_equal(tonari.Neighbors(*(part.cpu().numpy() for part in found)), truth)
        assert_equal(tonari.search(queries, points, K, metric=metric, device="cuda", **given), truth)
        if "where" not in given or given["where"].ndim == 1:
            graph = tonari.knn_graph(there[1], K, metric=metric, batch=np.arange(N) // 9, where=given.get("where"))
            same = np.arange(N)[:, None] // 9 == np.arange(N) // 9
            same &= ~np.eye(N, dtype=bool) & given.get("where", np.ones(N, bool))
            lists = tonari.Neighbors(graph.distances.cpu().numpy(), graph.indices.cpu().numpy())
            assert_equal(lists, nearest_allowed(points, points, K, same, metric))
