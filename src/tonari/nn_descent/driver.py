"""Run rounds until the recall on a sample of rows reaches the target, or is not expected to improve any more.

Progress counts work: comparisons per point, with other points or with centres. It depends only on the plan, not on the
machine or the run; the search for the true neighbours of the measured rows, which every run does once, is not included.
"""

from __future__ import annotations

import itertools
import logging
import math
import time
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from tonari.core.process.callers import callers_level
from tonari.core.process.progress import Progress, ProgressLike
from tonari.core.results.neighbors import Neighbors
from tonari.core.rows.draws import Purpose, generator
from tonari.core.trail import current, part
from tonari.metrics.recall import Recall, neighbors_recall
from tonari.nn_descent import tuning
from tonari.nn_descent.backend import Known
from tonari.nn_descent.entries import ID
from tonari.nn_descent.plan import DescentPlan
from tonari.nn_descent.report import DescentReport, RoundReport
from tonari.nn_descent.updates import GNND

if TYPE_CHECKING:
    from tonari.nn_descent.backend import Backend, Round
    from tonari.nn_descent.plan import DescentPlan


_GNND_ROUNDS = 8  # number of rounds of a typical run of "gnnd", such as the runs that measured its rates


def start_work(plan: DescentPlan) -> float:
    """Return the number of centres and members with which a point is compared before the first round."""
    if plan.start != "clusters":
        return 0.0
    return plan.n_clusters + plan.n_probe * plan.n / plan.n_clusters


def round_work(plan: DescentPlan) -> float:
    """Return the number of points with which a point is compared in a round: candidates and listed points."""
    if plan.update == GNND:
        # a point's NEW samples, up to 2 p, are compared with one another and with its OLD samples, up to 2 p
        return 6.0 * plan.samples**2
    met = plan.reverse + (plan.n_hubs + plan.reverse) * plan.neighbors_per_hub
    return float(plan.list_size + min(plan.width, met))


def expected_work(plan: DescentPlan) -> float:
    """Return the number of comparisons per point in a typical run; the seconds of a plan are estimated from it."""
    if plan.update == GNND:
        return start_work(plan) + _GNND_ROUNDS * round_work(plan)
    return start_work(plan) + plan.light_rounds * round_work(plan.light) + round_work(plan)


logger = logging.getLogger("tonari")

Measuring: TypeAlias = Callable[[Neighbors], Recall]


def build(
    steps: Backend,
    plan: DescentPlan,
    progress: ProgressLike = None,
    begin: Callable[[], Any] | None = None,
    boundary: int | None = None,
    patience: float | None = None,
    measure: Measuring | None = None,
) -> tuple[Neighbors, DescentReport]:
    """Build a graph by rounds of NN-Descent.

    Parameters
    ----------
    steps : Backend
        The steps on the device of the points.
    plan : DescentPlan
        The plan with which the steps were made.
    progress : None, bool or callable(done, total)
        Counts rows, in the start and in every round. The total assumes all rounds that the plan allows; rounds that
        were not needed count as done at the end.
    begin : callable(), optional
        Makes the initial lists, int32 of shape (n, list_size). It is called just before they are needed, because they
        take memory. Default: the lists of the plan's start.
    boundary : int, optional
        Compare only points on different sides of this row number, to merge two graphs. The recall is then the recall of
        the worse side.
    patience : float, optional
        For a caller with a fallback: the run gives up when its work exceeds this multiple of the plan's expected work,
        or when the recall appears to converge below the target. The result is then incomplete, without a warning. Work
        is counted in comparisons and not in seconds, so the same call gives up on all machines or on none.
    measure : callable(found), optional
        Returns the recall of an answer; the run ends when its `low` reaches the plan's recall. A caller passes it if it
        knows some true neighbours; it must then warn of a low recall itself. By default, the recall is measured on a
        sample of rows, whose true neighbours are found by exact search.

    Returns
    -------
    Neighbors of shape (n, k)
        On the device of the points. No entry is missing, unless the run gave up. Distances equal those of exact search.
    DescentReport

    Warns
    -----
    UserWarning
        The plan's recall was not reached.
    """
    started = time.perf_counter()
    told = measure is not None
    if plan.devices:
        measure = measure or Measure(steps, plan, boundary)
    recalls: list[float] = []
    lowest = 0.0
    least = tuning.STILL * plan.k * (plan.n if boundary is None else min(boundary, plan.n - boundary))
    done: list[RoundReport] = []
    work, most = start_work(plan), math.inf if patience is None else patience * expected_work(plan)
    starts = begin is None
    with Progress(
        progress, total=plan.n * (plan.rounds + starts), seconds=plan.seconds, label="neighbours", unit="row"
    ) as shown:
        if begin is None:
            entries = steps.start(plan.start, None if told or not plan.widens else known_rows(steps, plan))
            shown.add(plan.n)
        else:
            entries = begin()
        # Measured after the start, because on the CPU the start may contract the points, which makes exact search
        # faster.
        measure = measure or Measure(steps, plan, boundary)
        # on CUDA, a last round takes as long as any other
        guesses = not (told or plan.devices)
        listed = cast(Measure, measure).listed(entries) if guesses else 0.0
        while True:
            light, begun = _is_light(plan, recalls, lowest), time.perf_counter()
            last = guesses and _is_probably_last(plan, recalls[-1] if recalls else listed)
            made = steps.round(entries, boundary, light=light, last=last)
            work += round_work(plan.light if light else plan)
            estimate = measure(made.found)
            done.append(RoundReport(made.phi, made.changed))
            shown.add(plan.n)
            recalls.append(estimate.by_distance)
            lowest = estimate.low
            _report(plan, made, estimate, len(done), time.perf_counter() - begun)
            why = _why_end(plan, estimate, done, least)
            if not why and patience is not None:
                why = _why_give_up(plan, recalls, work, most)
            if why:
                break
            if made.entries is None:  # the recall is not reached, so the round was not the last one
                guesses = False
                made = steps.round(entries, boundary, light=light)
            entries = made.entries
            del made  # frees the lists of this round before the next round makes its own
        record = current.get()
        if record is not None:
            record.decided("rounds", why)
        given_up = patience is not None and estimate.low < plan.recall
        if not given_up and _fill(made.found, steps, plan.k):
            estimate = measure(made.found)
        shown.add(shown.total - shown.done)
    report = report_of(plan, estimate, done, time.perf_counter() - started, warned=not (given_up or told))
    return made.found, report


class Measure:
    """Measures the recall of lists on fixed rows, whose true neighbours are computed once.

    Parameters
    ----------
    boundary : int, optional
        Measure the rows on each side of this number separately, and report the worse side. If one side is small, even
        wrong lists of all its rows would hardly change the recall of all rows.
    """

    def __init__(self, steps: Backend, plan: DescentPlan, boundary: int | None = None) -> None:
        self._steps, self._plan = steps, plan
        self._sides = measured_rows(plan, boundary)
        self.rows = np.concatenate([rows for _, rows in self._sides]).astype(np.int64)
        with part("true neighbours of a sample", len(self.rows)):
            self._truth = steps.of_rows(steps.exact(self.rows, plan.k), np.arange(len(self.rows)))
        _check_complete(self._truth, self.rows)

    def __call__(self, found: Neighbors) -> Recall:
        listed, begin, measured = self._steps.of_rows(found, self.rows), 0, []
        for size, rows in self._sides:
            here = slice(begin, begin + len(rows))
            pair = (Neighbors(*(part[here] for part in both)) for both in (listed, self._truth))
            measured.append(neighbors_recall(*pair, metric=self._plan.metric, population=size))
            begin += len(rows)
        return min(measured, key=lambda recall: recall.low)

    def listed(self, entries: npt.NDArray[np.int32]) -> float:
        """Return the share of the true neighbours that the initial lists on the CPU contain."""
        begins = np.arange(len(self.rows), dtype=np.int64)[:, None] << 32
        return float(np.isin(self._truth.indices + begins, (np.asarray(entries[self.rows]) & ID) + begins).mean())


def known_rows(steps: Backend, plan: DescentPlan) -> Known:
    """Find the true neighbours of a few rows, which the start uses to choose its settings.

    These rows are drawn independently of the rows that measure the recall; otherwise the measured recall would be too
    high.

    They are drawn independently of the rows on which the recall is measured: it would otherwise be too high.
    """
    count = min(plan.n, max(tuning.PILOT_BLOCKS, -(-tuning.SHORT_PAIRS // plan.k)))
    rows = np.sort(generator(plan.seed, Purpose.START).choice(plan.n, count, replace=False)).astype(np.int64)
    with part("true neighbours for the start", count):
        truth = steps.of_rows(steps.exact(rows, plan.k), np.arange(count))
    _check_complete(truth, rows)
    return Known(rows, truth.indices)


def measured_rows(plan: DescentPlan, boundary: int | None = None) -> list[tuple[int, npt.NDArray[np.int64]]]:
    """Draw the rows that measure the recall of a run.

    The draw is independent of all other draws with the same seed, such as the rows on which clusters are trained.

    Returns
    -------
    list of (int, int64 array)
        For each side of the boundary: its size, and the row numbers drawn from it, ascending.
    """
    rng = generator(plan.seed, Purpose.MEASURED)
    ends = [0, plan.n] if boundary is None else [0, boundary, plan.n]
    return [
        (end - begin, begin + np.sort(rng.choice(end - begin, min(plan.sample, end - begin), replace=False)))
        for begin, end in itertools.pairwise(ends)
    ]


def report_of(
    plan: DescentPlan, estimate: Recall, done: list[RoundReport], seconds: float, *, warned: bool = True
) -> DescentReport:
    """Return the report of a run; if `warned`, warn the caller that the run did not reach the plan's recall."""
    reached = estimate.low >= plan.recall
    report = DescentReport(plan.recall, estimate, reached, plan.start, tuple(done), seconds, plan.update)
    if warned and not report.reached:
        warnings.warn(
            f"{report}; for more: a larger {plan.wider} or, to be surer, "
            f"sample (now {plan.sample}), through tonari.plan(..., method='nn-descent'), or method='exact'",
            stacklevel=callers_level(),
        )
    return report


def _is_light(plan: DescentPlan, recalls: list[float], lowest: float) -> bool:
    """Return whether the next round is light: an early round of the plan, or one when the target is nearly reached."""
    done = len(recalls)
    near = 1 - plan.recall >= tuning.NEAR_TARGET * (1 - lowest)
    return done < plan.light_rounds or (0 < done == plan.light_rounds and near)


def _is_probably_last(plan: DescentPlan, share: float) -> bool:
    """Whether the next round will probably reach the target recall.

    `share` is the share of the true neighbours that are listed already.
    """
    return 1 - plan.recall >= tuning.LEFT_BY_ROUND * (1 - share)


def _stands_still(done: list[RoundReport], least: float) -> bool:
    last = done[-tuning.STILL_ROUNDS :]
    return len(last) == tuning.STILL_ROUNDS and all(made.changed < least for made in last)


def _why_end(plan: DescentPlan, estimate: Recall, done: list[RoundReport], least: float) -> str:
    """Return the reason why no round follows; "" if another round may improve the graph."""
    if estimate.low >= plan.recall:
        return f"{len(done)}: a recall of {plan.recall:g} is reached"
    if _stands_still(done, least):
        return f"{len(done)}: the last ones changed fewer than {least:.0f} neighbours each"
    return f"{len(done)}: as many as the plan allows" if len(done) >= plan.rounds else ""


def _why_give_up(plan: DescentPlan, recalls: list[float], work: float, most: float) -> str:
    """Return the reason why the run gives up; "" if it continues."""
    if work >= most:
        return f"{len(recalls)}: given up after {work:,.0f} comparisons of each point, of at most {most:,.0f}"
    limit = _limit(recalls)
    if limit < plan.recall:
        return f"{len(recalls)}: given up, as the recall nears {limit:.5g}, below {plan.recall:g}"
    return ""


def _limit(recalls: list[float]) -> float:
    """Estimate the final recall, assuming that the gain per round shrinks by a constant factor.

    Return 1 if the gain does not shrink.

    A. C. Aitken, On Bernoulli's numerical solution of algebraic equations, Proc. R. Soc. Edinburgh 46, 1926.
    """
    if len(recalls) < 3:
        return 1.0
    before, last = recalls[-2] - recalls[-3], recalls[-1] - recalls[-2]
    return recalls[-1] + last * last / (before - last) if before > last else 1.0


def _fill(found: Neighbors, steps: Backend, k: int) -> int:
    """Complete the lists with fewer than k neighbours by exact search, and return the number of such lists."""
    short = found.indices[:, -1] < 0
    if not short.any():
        return 0
    rows = np.flatnonzero(short if isinstance(short, np.ndarray) else short.cpu().numpy())
    with part("rows that lack neighbours", len(rows)):
        true = steps.exact(rows, k)
    found.distances[rows], found.indices[rows] = true.distances, true.indices
    _check_complete(true, rows)
    return len(rows)


def _check_complete(true: Neighbors, rows: Any) -> None:
    """Raise ValueError if lists are still incomplete after exact search.

    The reason is a user-defined metric that returned NaN for nearly all points.
    """
    short = true.indices[:, -1] < 0
    if short.any():
        row = rows[int(short.nonzero()[0][0])]
        raise ValueError(f"row {row}: distances to all but a few points are NaN; the metric must give numbers")


def _report(plan: DescentPlan, made: Round, estimate: Recall, number: int, seconds: float) -> None:
    """Record and log the recall and the changes of a round."""
    record = current.get()
    if record is not None:
        recall = f"recall {estimate.by_distance:.5g} ({estimate.low:.5g} to {estimate.high:.5g})"
        record.tried(f"round {number}", plan.n, None, seconds, f"{made.changed:,} neighbours changed, {recall}")
    logger.info(
        "round %d: %d neighbours changed, phi %.8g, recall %.5g (%.5g to %.5g)",
        *(number, made.changed, made.phi, estimate.by_distance, estimate.low, estimate.high),
    )
