"""method="auto" compared with the two methods from which it chooses, over a grid of numbers of points and queries.

The time is that of ``tonari.search`` from rows to neighbours, including the build of a tree and auto's trials on the
data. ``value`` is auto's time divided by the time of the faster method; each time is the least of several alternating
rounds. Every cell of the grid has this bar. If a few queries show that a method is far slower than the other, it is not
timed, and its row has its estimated time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...harness.case import Case
from ...harness.contest import Ours
from ...harness.datasets.hard import DeviceData
from ...harness.device import timing_of
from ...harness.proof.neighbors import as_answer, same
from ...harness.run import LONG, Run
from .search import AUTO, EXACT, TREE, data_of, speed

ON, WITHIN = "over the better one", 1.2
OTHER_WITHIN = 1.15  # the bar on data to which auto's costs were not fitted
METHODS = {TREE: "kdtree", EXACT: "exact", AUTO: "auto"}
LARGEST = {"cpu": (1_000_000, 100_000), "cuda": (2_000_000, 1_000_000)}
# The largest number of points is divided by each of SHARES_N, and the largest number of queries by each of SHARES_M.
SHARES_N = (1, 10, 100)
SHARES_M = (1, 10, 100, 1000)
# A method is not timed if it is expected to take more than FAR_BEHIND times as long as the other one.
FAR_BEHIND = 3.0
PILOT_SHARE, LEAST_PILOT = 32, 128
CELL_SECONDS = 10.0


def grid(run: Run, case: Case) -> None:
    """Measure all cells (numbers of points and of queries) of the grid on the data of a case."""
    data = data_of(run, case)
    for share_n in SHARES_N:
        for share_m in SHARES_M:
            one = case.resized(n=max(2 * case.k, case.n // share_n), m=max(1, case.m // share_m))
            part = DeviceData(data.points[: one.n], data.queries[: one.m])
            if run.reaches(CELL_SECONDS):
                run.guarded(one, AUTO, lambda one=one, part=part: cell(run, one, part))
            else:
                run.write(one, [{"who": AUTO, "note": "not reached"}])


def cell(run: Run, case: Case, data: DeviceData) -> None:
    """Time one cell of the grid; write a row for each method and one for auto, with the verdict."""
    points = run.device.values(data.points)

    def search(method: str, rows: int) -> Callable[[], Any]:
        queries = run.device.values(data.queries[:rows])
        return lambda: run.tonari.search(queries, points, case.k, method=method, **run.options())

    expected = {
        name: would_take(run, case.m, lambda rows, name=name: search(METHODS[name], rows)) for name in (TREE, EXACT)
    }
    limit = FAR_BEHIND * min(expected.values())
    left_out = [name for name, seconds in expected.items() if seconds > limit]
    contestants = [
        Ours(run, name, search(method, case.m), case.m, case.m)
        for name, method in METHODS.items()
        if name not in left_out
    ]
    answers = [as_answer(one.run(), run.where) for one in contestants]
    for one, answer in zip(contestants, answers, strict=True):
        same(answer, answers[0], one.name)
    rounds = run.repeats if min(expected.values()) <= LONG else min(2, run.repeats)
    times: dict[str, list[float]] = {one.name: [] for one in contestants}
    for _ in range(rounds):
        for one in contestants:
            times[one.name].append(one.run().seconds)
    timings = {name: timing_of(found) for name, found in times.items()}
    best = min(timing.least for name, timing in timings.items() if name != AUTO)
    for one in contestants:
        facts = {"who": one.name, "stage": "with build", "proof": "bits of one another", "proved": case.m}
        facts |= speed(case, timings[one.name]) | {"ratio": timings[one.name].least / best}
        verdicts = run.verdicts(case.bars if one.name == AUTO else (), {ON: timings[one.name].least / best})
        run.write(case, [facts | verdict for verdict in verdicts])
    for name in left_out:
        run.write(case, [{"who": name, "stage": "with build", "note": f"about {expected[name]:.3g} s, not timed"}])


def would_take(run: Run, m: int, call_of: Callable[[int], Callable[[], Any]]) -> float:
    """Estimate the seconds of `m` queries from calls on fewer queries, whose fixed costs are counted only once."""
    pilot = max(LEAST_PILOT, m // PILOT_SHARE)
    if m <= 2 * pilot:
        return best_of(run, call_of(m))
    half, whole = (best_of(run, call_of(rows)) for rows in (pilot // 2, pilot))
    return whole + max(0.0, whole - half) / (pilot - pilot // 2) * (m - pilot)


def best_of(run: Run, call: Callable[[], Any]) -> float:
    """Return the seconds of the faster of two calls, since the first may compile kernels."""
    return min(run.time_once(call), run.time_once(call))
