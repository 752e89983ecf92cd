"""Counts within a radius by rules (filters), on the CPU, compared with counts without rules and with a user's own code.

One call of a public function is timed, from arrays to counts; "plain" has no rules, and the bar refers to it. "by hand"
lists everything within the radius and drops forbidden points. All counts are proved by "by hand", whose lists are
proved for a sample of rows by ``tonari.metrics.radius_reference``. In a ``prepared`` case, an Index is made before the
clock starts. The results are in the file of ``radius``.

A plain count adds the sizes of boxes that are within the radius, without reading their points. A rule that differs by
query has to be looked up for each of these points. A mask of one byte for each pair has 40 MB; on an EPYC (Zen 4),
reading it once takes 0.7 times as long as a plain count of an Index, so no way of applying the mask can take less in
addition. Checking and sorting lists of excluded points takes 0.5 times as long as a plain count.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..harness.case import Bar, Case, Suite
from ..harness.proof import WrongAnswer
from ..harness.run import Run, seconds_of

NEIGHBOURS = 230  # mean number of points within the radius of a query
EXCLUDED = 100
GROUPS = 10
PROVED_ROWS = 24
PLAIN = "plain"
BAR = 1.5
Rows = Any


def data_of(run: Run, case: Case) -> tuple[Rows, Rows, dict[str, Any], float]:
    """Return points and queries that fill the unit cube evenly, the rule, and the radius."""
    rng = np.random.default_rng(0)
    points, queries = (rng.random((rows, case.d), dtype=np.float32) for rows in (case.n, case.m))
    radius = float((NEIGHBOURS / case.n * 3 / (4 * np.pi)) ** (1 / 3))
    return points, queries, rule_of(case, rng), radius


def rule_of(case: Case, rng: np.random.Generator) -> dict[str, Any]:
    """Return the arguments of a rule."""
    if case.data == "mask":
        return {"where": rng.random(case.n) < 0.5}
    if case.data == "masks":
        return {"where": rng.random((case.m, case.n)) < 0.5}
    if case.data == "groups":
        numbers = (rng.integers(0, GROUPS, rows) for rows in (case.m, case.n))
        return dict(zip(("query_groups", "point_groups"), numbers, strict=True))
    few = min(EXCLUDED, case.n)
    return {"exclude": np.stack([rng.choice(case.n, few, replace=False) for _ in range(case.m)])}


def allowed_of(rule: dict[str, Any], rows: Rows, ids: Rows) -> Rows:
    """Return the mask of the pairs (query, point) that the rule allows."""
    if "where" in rule:
        mask = rule["where"]
        return mask[ids] if mask.ndim == 1 else mask[rows, ids]
    if "point_groups" in rule:
        return rule["query_groups"][rows] == rule["point_groups"][ids]
    n = int(max(ids.max(initial=0), rule["exclude"].max())) + 1
    pairs = np.arange(len(rule["exclude"]))[:, None] * n + rule["exclude"]
    return ~np.isin(rows * n + ids, pairs)


def calls_of(run: Run, case: Case) -> dict[str, Callable[[], Any]]:
    """Return the call of a case, and the calls with which it is compared."""
    points, queries, rule, radius = data_of(run, case)
    tonari, options = run.tonari, run.options()
    if case.prepared:
        index = tonari.Index(points, **options)

        def count(**rules: Any) -> Any:
            return index.radius_count(queries, radius, **rules)

        def lists() -> Any:
            return index.radius_search(queries, radius)
    else:

        def count(**rules: Any) -> Any:
            return tonari.radius_count(queries, points, radius, **rules, **options)

        def lists() -> Any:
            return tonari.radius_search(queries, points, radius, **options)

    def by_hand() -> Any:
        found = lists()
        rows = np.repeat(np.arange(case.m), np.diff(found.indptr))
        return np.bincount(rows[allowed_of(rule, rows, found.indices)], minlength=case.m)

    return {"tonari": lambda: count(**rule), f"tonari-{PLAIN}": count, "tonari-by hand": by_hand}


def workload(run: Run, case: Case) -> Callable[[], Any]:
    """Return the call of a case, for comparing versions."""
    return calls_of(run, case)["tonari"]


def prove(run: Run, case: Case, counts: Any, by_hand: Any) -> int:
    """Compare all counts with "by hand", and a sample with the reference; WrongAnswer if one differs."""
    from tonari.core.results.radius_neighbors import limits_for
    from tonari.metrics.radius_reference import brute_within

    points, queries, rule, radius = data_of(run, case)
    rows = np.sort(np.random.default_rng(12345).choice(case.m, min(PROVED_ROWS, case.m), replace=False))
    limits = limits_for(radius, len(rows), np.float32, closed=True, descending=False)
    truth = brute_within(queries[rows], points, limits, "euclidean")
    of = np.repeat(np.arange(len(rows)), np.diff(truth.indptr))
    expected = np.bincount(of[allowed_of(rule, rows[of], truth.indices)], minlength=len(rows))
    if not np.array_equal(counts[rows], expected) or not np.array_equal(counts, by_hand):
        raise WrongAnswer("counts differ from the reference")
    return len(rows)


def compare(run: Run, case: Case) -> None:
    """Prove, time and judge a count by a rule."""
    calls = calls_of(run, case)
    proved = prove(run, case, calls["tonari"](), calls["tonari-by hand"]())
    timings = {name: run.time(call) for name, call in calls.items()}
    ours = timings["tonari"]
    measured = {PLAIN: ours.median / timings[f"tonari-{PLAIN}"].median}
    base = {"who": "tonari", "proved": proved, "recall": 1.0} | seconds_of(ours)
    found = [base | verdict for verdict in run.verdicts(case.bars, measured)]
    run.write(case, found + [{"who": name} | seconds_of(timings[name]) for name in list(calls)[1:]])


def _case(rule: str, *, prepared: bool) -> Case:
    name = f"{'index' if prepared else 'once'}-{rule}"
    bars = (Bar(PLAIN, BAR, most=True, home=""),)
    return Case(*(name, "cpu", 20_000, 2_000, 3, 1), work=compare, data=rule, prepared=prepared, bars=bars, cost=5.0)


SUITE = Suite(
    "radius_rules",
    "radius",
    tuple(
        _case(rule, prepared=prepared) for prepared in (False, True) for rule in ("mask", "masks", "groups", "exclude")
    ),
    libraries=("tonari", "numpy"),
    torch=False,
    workload=workload,
)
