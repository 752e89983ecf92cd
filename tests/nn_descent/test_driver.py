"""The loop of rounds: when it stops, its reports and warnings, and that no neighbour is missing at the end."""

from __future__ import annotations

import dataclasses
import itertools
import logging
import warnings
from typing import Any

import numpy as np
import pytest

from tests.helpers import checks, plans
from tests.helpers.checks import assert_same_neighbors, assert_valid_neighbors
from tonari.core.results.neighbors import Neighbors
from tonari.core.trail import recording
from tonari.metrics import reference
from tonari.metrics.recall import neighbors_recall
from tonari.nn_descent import driver
from tonari.nn_descent.backend import Round
from tonari.nn_descent.cpu.backend import CpuBackend
from tonari.nn_descent.driver import build, expected_work, round_work, start_work
from tonari.nn_descent.entries import ID, MISSING
from tonari.nn_descent.method import beside_rows
from tonari.nn_descent.plan import DescentPlan
from tonari.nn_descent.reference import ReferenceBackend
from tonari.nn_descent.report import DescentReport, RoundReport


def planned(points: Any, k: int, **asked: Any) -> DescentPlan:
    n, d = points.shape
    return plans.descent(n, d, k, dtype=points.dtype, **{"metric": "euclidean", "threads": 1} | asked)


def built(points: Any, k: int, progress: Any = None, **asked: Any) -> tuple[Neighbors, DescentReport, Any]:
    """Return an answer, its report, and the steps."""
    plan = planned(points, k, **asked)
    steps = ReferenceBackend(points, plan)
    return *build(steps, plan, progress), steps


class Scripted(ReferenceBackend):
    """A backend whose rounds find the scripted number of true neighbours in each row, and far points otherwise."""

    def __init__(self, points: Any, plan: Any, script: list[int], changed: int = 10**9) -> None:
        super().__init__(points, plan)
        self.script, self.given, self.searched = iter(script), changed, []
        self.every = reference.brute(points, points, plan.n - 1, plan.metric, self_ids=np.arange(plan.n))
        self.truth = Neighbors(*(np.ascontiguousarray(part[:, : plan.k]) for part in self.every))

    def round(self, entries: Any, boundary: int | None = None, *, light: bool = False, last: bool = False) -> Round:
        right, k = next(self.script), self.plan.k
        found = Neighbors(
            *(np.hstack([part[:, :right], part[:, self.plan.n - 1 - k + right :]]) for part in self.every)
        )
        return Round(entries, found, self.given, float(right))

    def exact(self, rows: Any, k: int) -> Neighbors:
        self.searched.append(len(rows))
        return super().exact(rows, k)


POINTS = checks.gaussian(600, 4)
STARTED = 103  # rows whose true neighbours determine the start, for k = 10


def test_it_stops_as_soon_as_the_recall_is_there() -> None:
    plan = planned(POINTS, 10, recall=0.9)
    steps = Scripted(POINTS, plan, [3, 8, 10, 10])
    found, report = build(steps, plan)
    assert report.rounds == (RoundReport(3.0, 10**9), RoundReport(8.0, 10**9), RoundReport(10.0, 10**9))
    assert (report.reached, report.target, report.start) == (True, 0.9, "clusters")
    assert (report.estimate.low, report.estimate.rows, report.estimate.k) == (1.0, 600, 10)
    assert_same_neighbors(found, steps.truth)
    assert steps.searched == [STARTED, 600]  # rows for the start and the sample, once; nothing to fill
    assert 0 < report.seconds < 60


class Started(ReferenceBackend):
    """A backend that remembers the rows by which its start was chosen."""

    known: Any = None

    def start(self, kind: str, known: Any = None) -> Any:
        self.known = known
        return super().start(kind, known)


def test_a_start_is_chosen_by_other_rows_than_those_that_are_measured() -> None:
    plan = planned(POINTS, 10, sample=100, recall=0.2)
    steps = Started(POINTS, plan)
    build(steps, plan)
    measured = driver.measured_rows(plan)[0][1]
    assert len(steps.known.rows) == STARTED
    assert np.isin(steps.known.rows, measured).mean() < 0.35  # 1 in 6 is expected
    truth = reference.brute(POINTS[steps.known.rows], POINTS, 10, self_ids=steps.known.rows)
    np.testing.assert_array_equal(steps.known.indices, truth.indices)


def test_the_lower_end_of_the_interval_has_to_reach_the_target() -> None:
    for sample, rounds in ((60, 2), (600, 1)):
        plan = planned(POINTS, 10, recall=0.79, sample=sample)
        _, report = build(Scripted(POINTS, plan, [8, 10]), plan)
        assert len(report.rounds) == rounds
        assert report.estimate.rows == sample


def test_two_rounds_of_standstill_end_it_with_a_warning() -> None:
    plan = planned(POINTS, 10, recall=0.9)
    still = int(1e-3 * 600 * 10)
    with pytest.warns(
        UserWarning,
        match=r"recall 0\.5 .* of 0\.9 not reached in 2 rounds; .* n_probe \(now 4\), n_hubs \(now 16\)",
    ):
        _, report = build(Scripted(POINTS, plan, [5, 5, 5], changed=still - 1), plan)
    assert not report.reached
    plan = planned(POINTS, 10, recall=0.9, rounds=3)
    with pytest.warns(UserWarning, match="in 3 rounds"):
        _, report = build(Scripted(POINTS, plan, [5, 5, 5], changed=still), plan)
    assert len(report.rounds) == 3


def test_no_more_rounds_than_the_plan_allows_and_one_at_least() -> None:
    plan = planned(POINTS, 10, recall=0.9, rounds=1)
    with pytest.warns(UserWarning, match=r"not reached in 1 round;.*method='exact'"):
        build(Scripted(POINTS, plan, [2, 10]), plan)
    _, report, _ = built(POINTS[:50], 10, recall=0.01)
    assert len(report.rounds) == 1


@pytest.mark.parametrize(
    ("light_rounds", "script", "light"),
    [
        (1, [9, 10], [True, True]),  # the recall of 0.9 is nearly reached
        (1, [8, 10], [True, False]),
        (1, [9, 9, 10], [True, True, False]),  # once
        (2, [5, 9, 10], [True, True, True]),
        (2, [9, 8, 10], [True, True, False]),
        (0, [9, 10], [False, False]),
    ],
)
def test_a_light_round_is_added_where_little_is_missing(
    light_rounds: int, script: list[int], light: list[bool]
) -> None:
    plan = planned(POINTS, 10, recall=0.915, sample=600, light_rounds=light_rounds)
    seen = []

    class Watched(Scripted):
        def round(self, entries: Any, boundary: int | None = None, *, light: bool = False, last: bool = False) -> Round:
            seen.append(light)
            return super().round(entries, boundary, light=light)

    build(Watched(POINTS, plan, script), plan)
    assert seen == light


class Short(Scripted):
    """The same backend, with missing neighbours in some rows."""

    rows: Any = slice(None)

    def round(self, entries: Any, boundary: int | None = None, *, light: bool = False, last: bool = False) -> Round:
        made = super().round(entries, boundary, light=light)
        made.found.indices[self.rows, 7:], made.found.distances[self.rows, 7:] = MISSING, np.inf
        return made


def test_a_run_that_leads_nowhere_is_given_up_where_another_method_follows() -> None:
    plan = planned(POINTS, 10, recall=0.95)
    scripts = {  # found in each round, number of rounds
        (2, 5, 6, 10): 3,  # growth 3, 1: towards 6.5
        (2, 5, 8, 10): 4,  # growth that does not shrink is no sign
        (2, 6, 9, 10): 4,  # 4, 3: far enough
        (7, 6, 6, 10): 4,
    }
    for script, rounds in scripts.items():
        steps = Scripted(POINTS, plan, list(script))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found, report = build(steps, plan, patience=1e9)
        assert len(report.rounds) == rounds
        assert report.reached is (rounds == 4)
        assert (found.indices >= 0).all()
    with pytest.warns(UserWarning, match="not reached"):
        build(Scripted(POINTS, planned(POINTS, 10, recall=0.95, rounds=3), [2, 5, 6]), planned(POINTS, 10, rounds=3))


def test_patience_ends() -> None:
    plan = planned(POINTS, 10, recall=0.95)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        _, report = build(Scripted(POINTS, plan, [2, 5, 8, 10]), plan, patience=0.0)
    assert (len(report.rounds), report.reached) == (1, False)
    _, report = build(Scripted(POINTS, plan, [10]), plan, patience=0.0)
    assert report.reached


@pytest.mark.parametrize("update", ["pull", "gnnd"])
@pytest.mark.parametrize("times", [0.5, 1.0, 1.5, 3.0])
def test_patience_is_of_counted_work(times: float, update: str) -> None:
    plan = planned(POINTS, 10, recall=0.95, rounds=60)
    if update == "gnnd":
        plan = dataclasses.replace(plan, update=update, samples=10, light_rounds=0)
    spent = [start_work(plan)]
    while spent[-1] < times * expected_work(plan):
        light = len(spent) <= plan.light_rounds
        spent.append(spent[-1] + round_work(plan.light if light else plan))
    _, report = build(Scripted(POINTS, plan, [5] * 60), plan, patience=times)
    assert len(report.rounds) == max(1, len(spent) - 1)


def test_no_clock_decides_when_patience_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """The graph is the same on a machine that pauses for years between two rounds."""
    years = itertools.count(step=10**9)
    monkeypatch.setattr(driver.time, "perf_counter", lambda: next(years))
    plan = planned(POINTS, 10, recall=0.95)
    _, report = build(Scripted(POINTS, plan, [2, 5, 8, 10]), plan, patience=10.0)
    assert (len(report.rounds), report.reached) == (4, True)


def test_missing_neighbours_are_searched_and_count() -> None:
    plan = planned(POINTS, 10, recall=0.9, rounds=1)
    steps = Short(POINTS, plan, [9])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found, report = build(steps, plan)
    assert_same_neighbors(found, steps.truth)
    assert steps.searched == [STARTED, 600, 600]
    assert report.estimate.low == 1.0


def test_only_rows_that_miss_one_are_searched() -> None:
    plan = planned(POINTS, 10, recall=0.9)
    steps = Short(POINTS, plan, [10])
    steps.rows = [7, 90]
    found, report = build(steps, plan)
    assert steps.searched == [STARTED, 600, 2]
    assert_same_neighbors(found, steps.truth)
    assert report.estimate.by_index == 1.0


def test_entries_and_a_boundary_reach_the_steps() -> None:
    plan = planned(POINTS, 10, recall=0.9, rounds=4)
    seen = []

    class Watched(ReferenceBackend):
        def start(self, kind: str) -> Any:
            raise AssertionError("a start that nobody asked for")

        def round(self, entries: Any, boundary: int | None = None, *, light: bool = False, last: bool = False) -> Round:
            seen.append((entries, boundary, light))
            return super().round(entries, boundary, light=light)

    steps = Watched(POINTS, plan)
    begun = ReferenceBackend(POINTS, plan).start("random")
    _, report = build(steps, plan, begin=lambda: begun)
    assert seen[0][0] is begun
    assert all(boundary is None for _, boundary, _ in seen)
    assert len(seen) == len(report.rounds) > 1
    assert [light for _, _, light in seen] == [True] + [False] * (len(seen) - 1)
    with pytest.warns(UserWarning, match="not reached"):
        build(steps, plan, begin=lambda: begun, boundary=100)
    assert seen[-1][1] == 100


def test_progress_ends_at_its_total() -> None:
    calls: list[tuple[int, int]] = []
    _, report, steps = built(POINTS, 10, lambda done, total: calls.append((done, total)), recall=0.9)
    total = 600 * (steps.plan.rounds + 1)
    assert calls[0] == (600, total)
    assert calls[len(report.rounds)] == (600 * (1 + len(report.rounds)), total)
    assert calls[-1] == (total, total)


def test_rows_that_lack_neighbours_are_recorded_apart() -> None:
    points = checks.gaussian(50, 4)
    steps = CpuBackend(points, planned(points, 3))
    found = steps.exact(np.arange(50), 3)
    found.indices[7, 1:] = -1
    with recording("knn_graph", 50) as record:
        assert driver._fill(found, steps, 3) == 1
    assert [(part.title, part.rows, part.proved) for part in record.parts] == [("rows that lack neighbours", 1, 1)]
    assert not record.attempts


def test_each_round_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "tonari"):
        _, report, _ = built(POINTS, 10, start="random", recall=0.9)
    assert len(caplog.messages) == len(report.rounds) > 1
    assert caplog.messages[1].startswith(f"round 2: {report.rounds[1].changed} neighbours changed, phi ")


class OnTensors:
    """The steps of the reference, whose arrays are tensors, as on a device."""

    def __init__(self, points: Any, plan: Any) -> None:
        self.torch, self._steps = pytest.importorskip("torch"), Short(points, plan, [9])
        self._steps.rows, self.truth = [3, 4, 599], self._steps.truth

    def _tensors(self, found: Neighbors) -> Neighbors:
        return Neighbors(*map(self.torch.from_numpy, found))

    def start(self, kind: str, known: Any = None) -> Any:
        return self.torch.from_numpy(self._steps.start(kind))

    def round(self, entries: Any, boundary: int | None = None, *, light: bool = False, last: bool = False) -> Round:
        made = self._steps.round(entries.numpy(), boundary, light=light)
        return made._replace(entries=entries, found=self._tensors(made.found))

    def exact(self, rows: Any, k: int) -> Neighbors:
        return self._tensors(self._steps.exact(rows, k))

    def of_rows(self, found: Neighbors, rows: Any) -> Neighbors:
        return Neighbors(*(part[self.torch.from_numpy(rows)].numpy() for part in found))


def test_arrays_may_be_tensors() -> None:
    plan = planned(POINTS, 10, recall=0.8)
    steps: Any = OnTensors(POINTS, plan)
    found, report = build(steps, plan)
    assert report.estimate.by_index == pytest.approx(0.9 + 0.1 * 3 / 600)
    assert {type(part) for part in found} == {steps.torch.Tensor}
    host = beside_rows(found, POINTS)
    assert_valid_neighbors(host, m=600, n=600, k=10, self_ids=np.arange(600))
    assert host.indices[[3, 4, 599]].tolist() == steps.truth.indices[[3, 4, 599]].tolist()
    assert beside_rows(found, found.indices) is found


@pytest.mark.parametrize("metric", ["euclidean", "cosine", "inner_product", "l1"])
@pytest.mark.parametrize("start", ["clusters", "random"])
def test_it_finds_the_neighbours(metric: str, start: str) -> None:
    points = checks.gaussian(500, 6)
    found, report, _ = built(points, 8, metric=metric, start=start, recall=0.95)
    truth = reference.brute(points, points, 8, metric, self_ids=np.arange(500))
    assert report.reached
    assert neighbors_recall(found, truth, metric=metric).by_index >= 0.95
    assert_valid_neighbors(found, m=500, n=500, k=8, metric=metric, self_ids=np.arange(500))


def thousand_copies(n: int) -> Any:
    """Make n / 1000 different rows, a thousand copies of each."""
    return np.repeat(checks.gaussian(-(-n // 1000), 3), 1000, axis=0)[:n]


def two_far_clusters(n: int) -> Any:
    points = checks.gaussian(n, 3)
    points[n // 2 :] += 1e6
    return points


DEGENERATE = {
    "all equal": checks.all_equal(700, 3),
    "1000 copies of each": thousand_copies(2000),
    "two far clusters": two_far_clusters(700),
    "d = 1": checks.gaussian(700, 1),
    "n = 50": checks.gaussian(50, 4),
    "n = 2": checks.gaussian(2, 4),
    "n = 12": checks.gaussian(12, 4),
    "subnormal": checks.subnormal(300, 3),
    "huge": checks.huge(300, 3),
}


@pytest.mark.parametrize("start", ["clusters", "random"])
@pytest.mark.parametrize("name", DEGENERATE)
def test_degenerate_data_give_valid_lists(name: str, start: str) -> None:
    points = DEGENERATE[name]
    n = len(points)
    k = min(11, n - 1)
    found, report, steps = built(points, k, start=start, recall=0.9)
    assert report.reached, report
    assert_valid_neighbors(found, m=n, n=n, k=k, self_ids=np.arange(n))
    values = reference.values_at(points, points, found.indices)
    np.testing.assert_array_equal(found.distances, reference.returned(values, np.float32))
    if n <= 50:  # the lists contain all points
        assert_same_neighbors(found, steps.exact(np.arange(n), k))


def test_the_seed_decides() -> None:
    points = checks.gaussian(600, 12)
    made = [built(points, 5, start="random", recall=0.7, seed=seed) for seed in (1, 1, 2)]
    assert_same_neighbors(made[0][0], made[1][0])
    assert made[0][1].rounds == made[1][1].rounds != made[2][1].rounds
    assert made[0][1].estimate == made[1][1].estimate


def test_new_bits_are_used_up() -> None:
    """Without new bits, a run would compare the same points again and again."""
    plan = planned(POINTS, 10)
    steps = ReferenceBackend(POINTS, plan)
    entries = steps.start("random")
    for _ in range(6):
        entries = steps.round(entries).entries
    hubs = entries[:, : plan.n_hubs]
    assert (hubs == (hubs & ID)).mean() > 0.99
