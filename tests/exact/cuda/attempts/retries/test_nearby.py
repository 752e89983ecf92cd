"""Rows in tight clusters are searched among nearby points, which contain all their answers.

Without a GPU, Triton's interpreter runs the kernels on the CPU.
"""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.helpers.checks import Array, assert_same_neighbors
from tests.helpers.compiling import compiled
from tests.helpers.devices import HAS_TORCH, needs_torch
from tests.helpers.gpu_checks import DEVICE, on_host, plan_of, tensors
from tonari.exact.cuda import tuning
from tonari.metrics.reference import brute

pytestmark = [needs_torch]
if HAS_TORCH:
    import torch

    from tests.helpers.launches import launched
    from tonari.exact.cuda import dispatch
    from tonari.exact.cuda.attempts.first import DevicePoints
    from tonari.exact.cuda.attempts.retries import attempt, nearby, without_copies
    from tonari.exact.cuda.attempts.retries.attempt import Unproved
    from tonari.exact.cuda.attempts.retries.levels import AtLevel
    from tonari.exact.cuda.attempts.retries.nearby import reach_of
    from tonari.exact.cuda.routes.resident import search_resident
    from tonari.exact.cuda.rows.form import make_form

N, D, K, CLUSTERS = 240, 5, 3, 4


def tight(n: int = N, d: int = D, seed: int = 0, apart: float = 1e4, dtype: Any = np.float32) -> Array:
    """Make rows of clusters of width 1 that are far apart; row i belongs to cluster i modulo their number."""
    generator = np.random.default_rng(7)
    centres = apart * generator.standard_normal((CLUSTERS, d))
    rows = centres[np.arange(n) % CLUSTERS] + np.random.default_rng(seed).standard_normal((n, d))
    return rows.astype(dtype)


def rounds(queries: Array, points: Array, k: int, metric: str = "euclidean", least: int = 1) -> list[tuple[Any, Any]]:
    """Return the neighbourhoods of queries for their true k-th values."""
    q, p = tensors(DEVICE, queries, points)
    form = make_form(p, metric)
    (kth,) = tensors(DEVICE, brute(queries, points, k, metric).distances[:, -1])
    found = found_nearby(q, p, form, reach_of(kth, form), least)
    return [tuple(part.cpu().numpy() for part in one) for one in found]


def found_nearby(*given: Any) -> list[tuple[Any, Any]]:
    """Return the neighbourhoods of all rounds, and check that they have the reported sizes."""
    found = []
    for one in nearby.neighbourhoods(*given):
        each = list(one)
        assert one.sizes == [(len(some), len(numbers)) for some, numbers in each]
        found += each
    return found


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let neighbourhoods of any size be worthwhile."""
    monkeypatch.setattr(tuning, "NEARBY_OF_ROUND", 1)
    monkeypatch.setattr(tuning, "NEARBY_VALUES", 1)


@pytest.mark.parametrize("metric", ["euclidean", "sqeuclidean"])
@pytest.mark.parametrize(("dtype", "unit"), [(np.float32, 1), (np.float64, 1), (np.float64, 1e-6), (np.float64, 1e9)])
@pytest.mark.parametrize("centres", [1, 3, 64])
def test_all_answers_are_inside(
    centres: int, dtype: Any, unit: float, metric: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tuning, "NEARBY_CENTRES", centres)
    queries, points = (rows * dtype(unit) for rows in (tight(30, seed=1, dtype=dtype), tight(dtype=dtype)))
    truth = brute(queries, points, K, metric)
    seen: list[int] = []
    for some, numbers in rounds(queries, points, K, metric):
        seen += some.tolist()
        assert (np.diff(numbers) > 0).all()
        assert np.isin(truth.indices[some], numbers).all()
        assert len(numbers) <= N / CLUSTERS
    assert sorted(seen) == list(range(30))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "uint8", "int8"])
def test_form_rows_are_those_of_the_form(dtype: str) -> None:
    """For each rounding, and for any stride."""
    whole = dtype.endswith("int8")
    rows = torch.from_numpy(np.random.default_rng(0).integers(0, 100, (50, 2 * D))).to(getattr(torch, dtype))
    rows = (rows if whole else rows * 1e-3 + 7).to(DEVICE)[:, :D]
    form = make_form(rows, "euclidean")
    made, lengths = nearby._form_rows(rows, form, float(form.scale))
    expected = (rows.double() - form.centre) * form.scale
    torch.testing.assert_close(made, expected, rtol=2.0**-50, atol=0)
    torch.testing.assert_close(lengths, (expected**2).sum(1), rtol=2.0**-45, atol=0)


def test_squares_are_bounded_on_both_sides() -> None:
    """Far from the origin, where the distances of near rows are as small as the rounding errors."""
    rows = torch.from_numpy(1e6 + 1e-4 * np.random.default_rng(0).standard_normal((60, D))).to(DEVICE)
    lengths = (rows**2).sum(1)
    true = ((rows[:, None] - rows[None]) ** 2).sum(2)
    assert (nearby._squares(rows, lengths, rows, up=True) >= true).all()
    assert (nearby._squares(rows, lengths, rows, up=False) <= true).all()


def test_answers_at_the_limit_are_inside() -> None:
    """A point as far from the centre as the triangle inequality allows: on the line through the query, behind it."""
    points = np.zeros((N, 1), np.float32)
    points[:, 0] = 1e6 + np.arange(N)
    points[0] = 0
    queries = np.array([[1e6], [1e6 + 2], [1e6 + 3]], np.float32)
    found = rounds(queries, points, 3)
    truth = brute(queries, points, 3)
    assert sorted(row for some, _ in found for row in some) == [0, 1, 2]
    for some, numbers in found:
        assert np.isin(truth.indices[some], numbers).all()


def test_points_without_a_form_are_in_every_neighbourhood() -> None:
    queries, points = tight(12, seed=1), tight()
    q, p = tensors(DEVICE, queries, points)
    form = make_form(p, "euclidean")
    (kth,) = tensors(DEVICE, brute(queries, points, K).distances[:, -1])
    p[[3, 77]] = 3e20
    found = found_nearby(q, p, form, reach_of(kth, form), 1)
    assert found
    for _, numbers in found:
        assert np.isin([3, 77], numbers.cpu().numpy()).all()


def test_queries_without_a_known_neighbour_have_no_neighbourhood() -> None:
    """Queries near to them still have neighbourhoods."""
    queries, points = tensors(DEVICE, np.repeat(tight(CLUSTERS), 3, 0), tight())
    form = make_form(points, "euclidean")
    reach = (20 * form.scale).repeat(len(queries))
    reach[[0, 4]] = float("inf")
    found = found_nearby(queries, points, form, reach, 1)
    assert sorted(row for some, _ in found for row in some.tolist()) == [1, 2, 3, *range(5, 12)]


def test_half_of_the_points_are_no_neighbourhood() -> None:
    points = tight()
    points[::2] = points[0]
    found = rounds(points[:4] + np.float32(0.1), points, K)
    assert sorted(row for some, _ in found for row in some) == [1, 3]


def test_rows_that_are_all_near_have_no_neighbourhoods() -> None:
    """Rows of many columns, where all distances are about equal."""
    assert rounds(tight(12, 60, apart=0), tight(60, 60, apart=0), K) == []


def test_what_saves_little_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Clusters of identical points: 8, 8, 7 and 7 queries, and 180 points elsewhere."""
    points = tight(CLUSTERS)[np.arange(N) % CLUSTERS]
    queries = points[:30] + np.float32(0.5)

    def sizes(least: int, by_round: int = 1, centres: int = 64) -> list[int]:
        monkeypatch.setattr(tuning, "NEARBY_OF_ROUND", by_round)
        monkeypatch.setattr(tuning, "NEARBY_CENTRES", centres)
        return [len(some) for some, _ in rounds(queries, points, K, least=least)]

    assert sorted(sizes(1)) == [7, 7, 8, 8]
    assert sizes(7 * 180 * D + 1) == [8, 8]
    assert sizes(8 * 180 * D + 1) == []
    assert len(sizes(1, centres=1)) == CLUSTERS
    assert len(sizes(1, 8 * N * D + 1, centres=1)) == 1  # and no second round


@pytest.mark.full  # takes ten seconds and more in the interpreter
@pytest.mark.parametrize("self_join", [False, True])
@pytest.mark.parametrize("metric", ["euclidean", "sqeuclidean"])
@pytest.mark.usefixtures("attempts")
def test_rows_that_no_bound_separates_are_searched_nearby(
    metric: str, self_join: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tuning, "COPIES_LEFT", 2)
    if self_join:  # retries of these rows would take long
        monkeypatch.setattr(tuning, "NEARBY_SCREEN", 1)
    points = tight(120 if self_join else 400, apart=1e6)
    queries = points if self_join else tight(8, seed=1, apart=1e6)
    q, p = tensors(DEVICE, queries, points)
    q = p if self_join else q
    plan = plan_of(
        q, p, K, metric, devices=(DEVICE,), self_join=self_join, group=8, width=1, precisions=("float16", "values")
    )
    searched: list[int] = []
    among = Unproved.among

    def of_among(self: Any, numbers: Any, rows: Any) -> None:
        searched.append(len(rows))
        among(self, numbers, rows)

    monkeypatch.setattr(Unproved, "among", of_among)
    levels = []
    for subsets in (True,) if self_join else (False, True):
        made = dataclasses.replace(plan, subsets=subsets)
        with dispatch.on(plan.devices[0]):
            found, report = search_resident(q, dispatch.prepare(p, made), made, self_join=self_join, progress=False)
        own = np.arange(len(points)) if self_join else None
        assert_same_neighbors(on_host(found), brute(queries, points, K, metric, self_ids=own), metric=metric)
        levels.append(report.rows_by_precision)
        assert sum(levels[-1].values()) == len(queries)
    assert levels[-1].get("values", 0) < len(queries) / 2
    assert sum(searched) >= len(queries) / 2
    if not self_join:
        assert levels[0] == {"values": len(queries)}


def test_angular_metrics_compare_all_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "COPIES_LEFT", 1)
    points = np.ones((200, D), np.float32)
    points[:, 0] += np.float32(2.0**-20) * np.arange(200)
    q, p = tensors(DEVICE, points[[100]], points)
    plan = plan_of(q, p, K, "cosine", devices=(DEVICE,), group=8, width=1, precisions=("float16", "values"))
    plan = dataclasses.replace(plan, subsets=True)
    with dispatch.on(plan.devices[0]):
        found, report = search_resident(q, dispatch.prepare(p, plan), plan, progress=False)
    assert report.rows_by_precision == {"values": 1}
    assert_same_neighbors(on_host(found), brute(points[[100]], points, K, "cosine"), metric="cosine")


@pytest.mark.usefixtures("attempts")
def test_retries_are_rehearsed_with_what_finds_copies() -> None:
    from tests.helpers.plans import exact_cuda
    from tonari.cuda.compiling.rehearsal import Card, rehearsing

    def launched(rows: int, metric: str, *, subsets: bool) -> set[str]:
        plan = exact_cuda(1000, 1000, 40, 10, metric=metric, devices=("cuda:0",), free_bytes=10**9)
        points, queries = (torch.empty((1000, 40), device="meta") for _ in range(2))
        with rehearsing(Card((9, 0), 132)) as rehearsal:
            prepared = DevicePoints(points, metric, plan.precisions[0])
            begun = prepared.begin(queries, dataclasses.replace(plan, subsets=subsets))
            without_copies.WithoutCopies().foresee(begun, rows)
        return {call.name for call in rehearsal.calls.values()}

    finders = {"hash_rows_kernel", "same_rows_kernel"}
    assert finders <= launched(tuning.COPIES_LEFT, "euclidean", subsets=True)
    assert not finders & launched(tuning.COPIES_LEFT - 1, "euclidean", subsets=True)
    assert not finders & launched(tuning.COPIES_LEFT, "euclidean", subsets=False)


@pytest.mark.usefixtures("attempts")
def test_a_neighbourhood_expects_the_kernels_of_its_search(monkeypatch: pytest.MonkeyPatch) -> None:
    from tonari.cuda.compiling.rehearsal import Card, rehearsing

    monkeypatch.setattr(tuning, "COPIES_LEFT", 2)
    expected: list[set[str]] = []
    real = attempt.expecting

    def expecting(stage: Any) -> Any:
        with rehearsing(Card((9, 0), 132)) as rehearsal:
            stage()
        expected.append({call.name for call in rehearsal.calls.values()})
        return real(stage)

    monkeypatch.setattr(attempt, "expecting", expecting)
    q, p = tensors(DEVICE, tight(8, seed=1, apart=1e6), tight(400, apart=1e6))
    plan = plan_of(q, p, K, devices=(DEVICE,), group=8, width=1, precisions=("float16", "values"))
    plan = dataclasses.replace(plan, subsets=True)
    with dispatch.on(plan.devices[0]):
        search_resident(q, dispatch.prepare(p, plan), plan, progress=False)
    others = {"hash_rows_kernel", "dense_kernel"}  # of the first level and of the last
    assert any("hash_rows_kernel" in names for names in expected)
    searches = [names for names in expected if "pack_kernel" in names and not others & names]
    assert searches
    assert all({"screen_kernel", "refine_kernel", "certify_kernel"} <= names for names in searches)


@pytest.mark.full  # takes ten seconds and more in the interpreter
def test_all_neighbourhoods_of_a_round_are_rehearsed_as_they_are_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of different sizes."""
    from tonari.cuda.compiling.rehearsal import Card, rehearsing

    rehearsed: set[Any] = set()
    seen: list[Any] = []
    usual, among = attempt.expecting, Unproved.among

    def expecting(stage: Any) -> Any:
        with rehearsing(Card((0, 0), 1)) as rehearsal:
            stage()
        rehearsed.update(rehearsal.calls)
        return usual(stage)

    def of_among(self: Any, *given: Any) -> None:
        with launched() as within:
            among(self, *given)
        seen.extend(within)

    monkeypatch.setattr(attempt, "expecting", expecting)
    monkeypatch.setattr(Unproved, "among", of_among)
    points, queries = tight(1800, apart=1e6), tight(40, seed=1, apart=1e6)
    points = np.delete(points, [0, 4, 8, *range(1, 1200, 8)], 0)
    queries = np.delete(queries, [0, *range(1, 20, 4)], 0)
    q, p = tensors(DEVICE, queries, points)
    plan = plan_of(q, p, K, devices=(DEVICE,), group=8, width=3, precisions=("float16", "values"))
    with dispatch.on(plan.devices[0]):
        search_resident(q, dispatch.prepare(p, plan), dataclasses.replace(plan, subsets=True), progress=False)
    assert len(seen) > 2 * 8  # two, as half of the points are in clusters of more than a quarter
    assert {one[0].__name__ for one in set(seen) - rehearsed} == set()


@pytest.mark.full  # takes ten seconds and more in the interpreter
@pytest.mark.parametrize(
    ("least", "inseparable", "before"), [(1, False, True), (1 << 40, True, True), (1 << 40, False, False)]
)
def test_rows_are_searched_nearby_before_retries_if_these_are_long_or_in_vain(
    least: int, inseparable: bool, before: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The remaining rows are screened again."""
    monkeypatch.setattr(tuning, "NEARBY_SCREEN", least)
    if not inseparable:
        monkeypatch.setattr(nearby, "are_inseparable", lambda *given: False)
    queries, points = tight(8, seed=1, apart=1e6), tight(400, apart=1e6)
    queries[7] = 0
    steps, _ = steps_of(queries, points, monkeypatch)
    assert {"levels", "near"} <= set(steps)
    assert (steps[0] == "near") == before


def test_tight_clusters_take_one_round_and_no_level(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernels of all neighbourhoods are requested before the first one is searched."""
    sizes: list[list[tuple[int, int]]] = []
    usual = Unproved.expecting_among

    def expecting(self: Any, given: list[tuple[int, int]]) -> Any:
        sizes.append(given)
        return usual(self, given)

    monkeypatch.setattr(Unproved, "expecting_among", expecting)
    steps, report = steps_of(tight(40, seed=1, apart=1e6), tight(1200, apart=1e6), monkeypatch, width=3)
    assert steps == ["near"] * CLUSTERS
    assert sizes == [[(10, 300)] * CLUSTERS]
    assert report.rows_by_precision == {"float16": 40}


def steps_of(queries: Array, points: Array, monkeypatch: pytest.MonkeyPatch, width: int = 1) -> tuple[list[str], Any]:
    """Return the attempts at unproved rows in their order, and the report; the answers are checked."""
    q, p = tensors(DEVICE, queries, points)
    plan = plan_of(q, p, K, devices=(DEVICE,), group=8, width=width, precisions=("float16", "values"))
    steps: list[str] = []
    worth, among = AtLevel.worth, Unproved.among

    def at_level(self: Any, left: Any) -> Any:
        rows = worth(self, left)
        if self.number == 0 and len(left.known):
            steps.append("levels")
        return rows

    def of_among(self: Any, *given: Any) -> None:
        steps.append("near")
        among(self, *given)

    monkeypatch.setattr(AtLevel, "worth", at_level)
    monkeypatch.setattr(Unproved, "among", of_among)
    with dispatch.on(plan.devices[0]):
        plan = dataclasses.replace(plan, subsets=True)
        found, report = search_resident(q, dispatch.prepare(p, plan), plan, progress=False)
    assert_same_neighbors(on_host(found), brute(queries, points, K), metric="euclidean")
    return steps, report


@pytest.mark.parametrize(
    ("kind", "most", "expected"),
    [
        ("tight", 40, True),
        ("tight", 60, False),  # all 60 points of a cluster are refined
        ("less tight", 40, False),  # by 2^-11, which the bounds distinguish
        ("one cluster", 40, False),  # among all points, far from an outlier
        ("copies", 40, False),  # their distances are below their errors
        ("half", 40, False),
        ("unknown", 40, False),  # no row has neighbours so far
    ],
)
def test_inseparable_rows_are_told_by_a_sample(kind: str, most: int, expected: bool) -> None:
    apart = {"less tight": 300.0, "one cluster": 0.0, "copies": 1e4}.get(kind, 1e5)
    points, queries = tight(apart=apart), tight(16, seed=1, apart=apart)
    if kind == "one cluster":
        points[:], queries[:] = points + np.float32(1e5), queries + np.float32(1e5)
        points[0] = -1e5 * N
    if kind == "copies":
        points[:] = points[:CLUSTERS][np.arange(N) % CLUSTERS]
        queries[:] = points[:16]
    if kind == "half":
        queries[::2] = np.random.default_rng(3).standard_normal((8, D)) * 1e5
    q, p = tensors(DEVICE, queries, points)
    form = make_form(p, "euclidean")
    (kth,) = tensors(DEVICE, brute(queries, points, K).distances[:, -1])
    reach = reach_of(kth, form)
    if kind == "unknown":
        reach[:] = float("inf")
    assert nearby.are_inseparable(q, p, form, reach, most) == expected


_AMONG = """
import json, torch
from tests.helpers import plans
from tonari.cuda.compiling.rehearsal import Card, rehearsing
from tonari.exact.cuda.attempts.retries import attempt
from tonari.exact.cuda.attempts.first import DevicePoints
from tonari.exact.cuda.attempts.ladder import search_all
from tonari.exact.cuda.attempts.rehearse import rehearse_search
from tonari.exact.report import Report

plan = plans.exact_cuda(10**6, 10**4, 128, 10, devices=("cuda:0",), free_bytes=10**11)

def variants(stage):
    with rehearsing(Card((9, 0), 132)) as rehearsal:
        stage()
    return set(rehearsal.calls)

def around(rows, count):
    points, queries = (torch.empty((n, 128), device="meta") for n in (10**6, 10**4))
    begun = DevicePoints(points, plan.metric, plan.precisions[0]).begin(queries, plan)
    left = attempt.Unproved(begun, None, None, torch.empty(10**4, device="meta"), Report(rows=10**4), search_all)
    stages = []
    attempt.expecting = stages.append
    left.expecting_among([(rows, count)])
    stages[0]()

first = variants(lambda: rehearse_search(plan, "float32", self_join=False))
for rows, count in SIZES:
    print(json.dumps(sorted(one[0].__name__ for one in variants(lambda: around(rows, count)) - first)))
print(len(first))
"""


@pytest.mark.process
def test_neighbourhoods_are_searched_by_the_kernels_of_the_first_attempt(tmp_path: Path) -> None:
    """For 10,000 queries among a million points, on a GPU with 132 multiprocessors."""
    sizes = [
        (500, 50_000),
        (437, 49_121),
        (512, 50_016),
        (563, 50_848),
        (400, 17_000),
        (1000, 100_000),
        (5000, 250_000),
    ]
    *more, first = compiled(f"SIZES = {sizes}" + _AMONG, tmp_path)
    assert [json.loads(one) for one in more] == [[]] * len(sizes)
    assert int(first) == 15
