"""Counts within a radius by rules (filters), on the CPU, compared with counts without rules and with a user's own code.

One call of a public function is timed, from arrays to counts; "plain" has no rules, and the bar refers to it. "by hand"
lists everything within the radius and drops forbidden points. All counts are verified by "by hand", whose lists are
verified for a sample of rows by ``tonari.metrics.reference``. In a ``prepared`` case, an Index is made before
the clock starts. The results are in the file of ``radius``.

A plain count adds the sizes of boxes that are within the radius, without reading their points. A rule that differs by
query has to be looked up for each of these points. A mask of one byte for each pair has 40 MB; reading it once takes
two to three times as long as a plain count of an Index, if 230 points are within the radius. No way of applying the
mask to many points can take less in addition, so the bar of these masks refers to a plain count and one pass over the
mask. The k of a case is the mean number of points within the radius, without the edges of the cube.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..harness.case import Bar, Case, Suite
from ..harness.proof import WrongAnswer
from ..harness.run import Run, seconds_of

FEW, SOME, MANY = 10, 230, 10_000  # mean numbers of points within the radius of a query
EXCLUDED = 100
GROUPS = 10
PROVED_ROWS = 24
PLAIN = "plain"
BAR = 1.5
READ = "plain and mask"
READ_BAR = 1.2
Rows = Any


def data_of(run: Run, case: Case) -> tuple[Rows, Rows, dict[str, Any], float]:
    """Return points and queries that fill the unit cube evenly, the rule of the case, and the radius."""
    rng = np.random.default_rng(0)
    points, queries = (rng.random((rows, case.d), dtype=np.float32) for rows in (case.n, case.m))
    radius = float((case.k / case.n * 3 / (4 * np.pi)) ** (1 / 3))
    return points, queries, rule_of(case, rng), radius


def rule_of(case: Case, rng: np.random.Generator) -> dict[str, Any]:
    """Return the rule of a case as keyword arguments of tonari's functions."""
    if case.data == "mask":
        return {"where": rng.random(case.n) < 0.5}
    if case.data == "masks":
        return {"where": rng.random((case.m, case.n)) < 0.5}
    if case.data == "bits":
        return {"where": np.packbits(rng.random((case.m, case.n)) < 0.5, axis=1, bitorder="little")}
    if case.data == "groups":
        numbers = (rng.integers(0, GROUPS, rows) for rows in (case.m, case.n))
        return dict(zip(("query_groups", "point_groups"), numbers, strict=True))
    few = min(EXCLUDED, case.n)
    return {"exclude": np.stack([rng.choice(case.n, few, replace=False) for _ in range(case.m)])}


def allowed_of(rule: dict[str, Any], rows: Rows, ids: Rows) -> Rows:
    """Return the mask of the pairs (query, point) that the rule allows."""
    if "where" in rule:
        mask = rule["where"]
        if mask.dtype == np.uint8:
            return (mask[rows, ids >> 3] >> (ids & 7).astype(np.uint8) & 1).astype(bool)
        return mask[ids] if mask.ndim == 1 else mask[rows, ids]
    if "point_groups" in rule:
        return rule["query_groups"][rows] == rule["point_groups"][ids]
    n = int(max(ids.max(initial=0), rule["exclude"].max())) + 1
    pairs = np.arange(len(rule["exclude"]))[:, None] * n + rule["exclude"]
    return ~np.isin(rows * n + ids, pairs)


def calls_of(run: Run, case: Case) -> dict[str, Callable[[], Any]]:
    """Return, by name, the call of a case first, then the calls with which it is compared."""
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
    """Return a function that runs a case once; comparisons of two versions time it."""
    return calls_of(run, case)["tonari"]


def prove(run: Run, case: Case, counts: Any, by_hand: Any) -> int:
    """Compare all counts with "by hand", and a sample with the reference; raise WrongAnswer if a count differs."""
    from tonari.core.results.radius_neighbors import limits_for
    from tonari.metrics.reference import brute_within

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
    """Verify the counts of a case, time all its calls, and check the required speed-ups."""
    calls = calls_of(run, case)
    proved = prove(run, case, calls["tonari"](), calls["tonari-by hand"]())
    timings = {name: run.time(call) for name, call in calls.items()}
    ours = timings["tonari"]
    plain = timings[f"tonari-{PLAIN}"].median
    measured = {PLAIN: ours.median / plain}
    if case.data == "masks":
        mask = data_of(run, case)[2]["where"]
        measured = {READ: ours.median / (plain + run.time(lambda: np.count_nonzero(mask)).median)}
    base = {"who": "tonari", "proved": proved, "recall": 1.0} | seconds_of(ours)
    found = [base | verdict for verdict in run.verdicts(case.bars, measured)]
    run.write(case, found + [{"who": name} | seconds_of(timings[name]) for name in list(calls)[1:]])


def _case(rule: str, k: int, *, prepared: bool) -> Case:
    size = {FEW: "-few", SOME: "", MANY: "-many"}[k]
    name = f"{'index' if prepared else 'once'}-{rule}{size}"
    bar = Bar(READ, READ_BAR, most=True, home="") if rule == "masks" else Bar(PLAIN, BAR, most=True, home="")
    return Case(*(name, "cpu", 20_000, 2_000, 3, k), work=compare, data=rule, prepared=prepared, bars=(bar,), cost=5.0)


SUITE = Suite(
    "radius_rules",
    "radius",
    (
        *(
            _case(rule, SOME, prepared=prepared)
            for prepared in (False, True)
            for rule in ("mask", "masks", "bits", "groups", "exclude")
        ),
        *(_case(rule, k, prepared=True) for k in (FEW, MANY) for rule in ("masks", "bits", "exclude")),
    ),
    libraries=("tonari", "numpy"),
    torch=False,
    workload=workload,
)
