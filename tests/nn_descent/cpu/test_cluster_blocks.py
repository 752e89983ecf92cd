"""Pieces of clusters and the search through them, compared with plain models."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import numpy.typing as npt
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers import checks, plans
from tonari.core import _native
from tonari.core.process.workers import Workers
from tonari.metrics.reference import pairwise
from tonari.nn_descent.cpu.cluster_blocks import Members, Pieces, Reach, pieces_of, search_clusters
from tonari.nn_descent.cpu.init import best_of_clusters
from tonari.nn_descent.cpu.scores import Scores
from tonari.nn_descent.entries import MISSING
from tonari.nn_descent.plan import DescentPlan

Array = npt.NDArray[Any]

ISAS = _native.supported_isas()


def plan_for(points: Array, metric: str = "sqeuclidean", **overrides: Any) -> DescentPlan:
    n, d = points.shape
    return plans.descent(n, d, 1, dtype=points.dtype, metric=metric, **{"threads": 2, "list_size": 1} | overrides)


def whole_numbers(n: int, d: int, seed: int) -> Array:
    """Make rows that every kernel scores without rounding, many of them equal."""
    return np.random.default_rng(seed).integers(-3, 4, (n, d)).astype(np.int8)


def first_by_score(queries: Array, points: Array, count: int) -> Array:
    """Return places by (squared distance, place)."""
    return np.argsort(pairwise(queries, points, "sqeuclidean"), axis=1, kind="stable")[:, :count].astype(np.int32)


@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_pieces(data: st.DataObject) -> None:
    n, clusters = data.draw(st.integers(1, 60)), data.draw(st.integers(1, 9))
    most = data.draw(st.integers(1, 20))
    boundary = data.draw(st.none() | st.integers(1, n))
    near = np.random.default_rng(data.draw(st.integers(0, 99))).integers(0, clusters, (n, 2)).astype(np.int32)
    made = pieces_of(near, clusters, most, boundary)
    np.testing.assert_array_equal(np.sort(made.order), np.arange(n))
    np.testing.assert_array_equal(made.order[made.places()], np.arange(n))
    assert made.begins[0] == 0
    assert made.begins[-1] == n
    assert made.firsts[0] == 0
    assert made.firsts[-1] == len(made.clusters) == len(made.sides) == len(made.begins) - 1
    for at, (begin, end) in enumerate(zip(made.begins, made.begins[1:], strict=False)):
        rows = made.order[begin:end]
        assert 1 <= len(rows) <= most
        assert (near[rows, 0] == made.clusters[at]).all()
        assert (made.sides[at] == (boundary is not None and rows >= boundary)).all()
        assert made.firsts[made.clusters[at]] <= at < made.firsts[made.clusters[at] + 1]
    for cluster in range(clusters):
        np.testing.assert_array_equal(
            np.sort(made.of_clusters(np.array([cluster]))), np.flatnonzero(near[:, 0] == cluster)
        )


def plain_pieces(
    at: int, near: Array, seekers: Pieces, members: Pieces, reach: Reach, least: int, wanted: int | None
) -> list[int]:
    """Return the pieces of members that a block of seekers is compared with."""
    rows = seekers.order[seekers.begins[at] : seekers.begins[at + 1]]
    votes = np.zeros(len(members.firsts) - 1, int)
    for column in range(near.shape[1]):
        np.add.at(votes, near[rows, column], near.shape[1] - column)
    named = [cluster for cluster in np.argsort(-votes, kind="stable") if votes[cluster]]
    assert reach.ranked is not None
    named += [cluster for cluster in reach.ranked[seekers.clusters[at]] if not votes[cluster]]
    first, last = seekers.firsts[seekers.clusters[at] : seekers.clusters[at] + 2]
    sizes, chosen, met = np.diff(members.begins), [], 0
    for cluster in named[: reach.probes]:
        here = list(range(members.firsts[cluster], members.firsts[cluster + 1]))
        turn = len(here) * (at - first) // (last - first)
        for piece in here[turn:] + here[:turn]:
            if met < reach.most and wanted in (None, members.sides[piece]):
                chosen.append(piece)
                met += sizes[piece]
    for piece in range(len(sizes)):
        if met < least and piece not in chosen and wanted in (None, members.sides[piece]):
            chosen.append(piece)
            met += sizes[piece]
    return chosen


@settings(max_examples=80, deadline=None)
@given(data=st.data())
def test_a_search_through_clusters(data: st.DataObject) -> None:
    n, d = data.draw(st.integers(2, 150)), data.draw(st.integers(1, 20))
    clusters, named = data.draw(st.integers(1, 12)), data.draw(st.integers(1, 4))
    probes, most = data.draw(st.integers(1, clusters)), data.draw(st.integers(1, 2 * n))
    boundary = data.draw(st.none() | st.integers(1, n - 1))
    size, threads = data.draw(st.integers(1, n)), data.draw(st.integers(1, 3))
    seed = data.draw(st.integers(0, 999))
    points = whole_numbers(n, d, seed)
    near = np.random.default_rng(seed).integers(0, clusters, (n, named)).astype(np.int32)
    seekers = pieces_of(near, clusters, data.draw(st.integers(1, 40)), boundary)
    members = pieces_of(near[::-1].copy(), clusters, data.draw(st.integers(1, 40)), boundary)
    scores = Scores(points, "sqeuclidean", plan_for(points, isa=data.draw(st.sampled_from(ISAS))))
    kernel = data.draw(st.sampled_from([scores.coarse, scores.fine]))
    found = np.full((n, size), MISSING, np.int32)
    packed = members.pack(lambda rows: scores.pack(kernel, points[rows]), Workers(1))
    rng = np.random.default_rng(seed)
    ranked = rng.permuted(np.tile(np.arange(clusters, dtype=np.int32), (clusters, 1)), axis=1)
    ranked = ranked[:, : data.draw(st.integers(0, clusters))].copy()
    reach = Reach(probes=probes, most=most, without_self=boundary is None, boundary=boundary, ranked=ranked)
    among = Members(kernel, scores.form, members, packed)
    search_clusters(points, near, seekers, among, reach, found, Workers(threads), mark=1 << 20)
    truth = np.full((n, size), MISSING, np.int32)
    for at in range(len(seekers.clusters)):
        wanted = None if boundary is None else 1 - int(seekers.sides[at])
        there = n - 1 if boundary is None else (boundary, n - boundary)[wanted]
        k = min(size, there)
        chosen = plain_pieces(at, near, seekers, members, reach, k + (boundary is None), wanted)
        places = np.sort(np.concatenate([np.arange(*members.begins[piece : piece + 2]) for piece in chosen]))
        for row in seekers.order[seekers.begins[at] : seekers.begins[at + 1]]:
            others = members.order[places]
            others = others[others != row] if boundary is None else others
            truth[row, :k] = others[first_by_score(points[row : row + 1], points[others], k)[0]] | 1 << 20
    np.testing.assert_array_equal(found, truth)


def test_a_search_among_other_rows() -> None:
    points, queries = whole_numbers(300, 9, 0), whole_numbers(40, 9, 1)
    near = np.zeros((40, 1), np.int32)
    members = pieces_of(np.zeros((300, 1), np.int32), 1, 64)
    scores = Scores(points, "sqeuclidean", plan_for(points))
    packed = members.pack(lambda rows: scores.pack(scores.coarse, points[rows]), Workers(1))
    found = np.empty((40, 5), np.int32)
    among, reach = Members(scores.coarse, scores.form, members, packed), Reach(probes=1, most=300)
    search_clusters(queries, near, pieces_of(near, 1, 16), among, reach, found, Workers(1))
    np.testing.assert_array_equal(found, first_by_score(queries, points, 5))


def test_the_start_is_the_same_for_any_number_of_threads() -> None:
    points = checks.gaussian(900, 10)
    for isa in ISAS:
        plan = plan_for(points, isa=isa, list_size=12, n_clusters=9, n_probe=4)
        first, *others = (
            best_of_clusters(points, dataclasses.replace(plan, threads=threads), 12, Workers(threads))
            for threads in (1, 2, 5)
        )
        for other in others:
            np.testing.assert_array_equal(other[0], first[0])
            np.testing.assert_array_equal(other[1], first[1])
