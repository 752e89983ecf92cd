"""All points within a radius on the CPU, compared with faiss, scikit-learn and SciPy's cKDTree.

One call of a public function is timed, from arrays to answer; a peer's time includes building its index. The answer is
verified first: a sample of rows bit for bit against ``tonari.metrics.reference``, and the counts of each peer
against ours, except for its rounding. A peer that would take longer than --peer-seconds gets only the first queries;
the seconds of its call are scaled, as ``rows_timed`` shows. In a case of pairs, tonari finds each pair once, a peer
twice.
"""

from __future__ import annotations

import contextlib
import statistics
from collections.abc import Callable
from typing import Any

import numpy as np

from ..harness.case import Bar, Case, Suite
from ..harness.device import timing_of
from ..harness.peers.radius import RADIUS_PEERS, RunningRadiusPeer
from ..harness.proof import WrongAnswer
from ..harness.run import Run, say, seconds_of

PROVED_ROWS = 24
AGREEING = 0.999  # minimum share of neighbours that the counts of a peer and of tonari must have in common
_SAMPLED = 200  # number of queries in the sample that determines a radius
Rows = Any


def alike(case: Case) -> tuple[Rows, Rows]:
    """Return rows with near-duplicates, as among texts: one row in twenty is a noisy copy of another."""
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((case.n, case.d), dtype=np.float32)
    copies = case.n // 20
    noise = rng.uniform(0.1, 0.5, (copies, 1)).astype(np.float32)
    rows[-copies:] = rows[:copies] + noise * rng.standard_normal((copies, case.d), dtype=np.float32)
    return rows, rows


def gaussian(case: Case) -> tuple[Rows, Rows]:
    """Return N(0, 1) points and queries."""
    rng = np.random.default_rng(0)
    return tuple(rng.standard_normal((rows, case.d), dtype=np.float32) for rows in (case.n, case.m))  # type: ignore[return-value]


def cloud(case: Case) -> tuple[Rows, Rows]:
    """Return points and queries that fill the unit cube evenly; the queries of a graph are its points."""
    rng = np.random.default_rng(0)
    points = rng.random((case.n, case.d), dtype=np.float32)
    return points, points if case.graph else rng.random((case.m, case.d), dtype=np.float32)


MAKERS: dict[str, Callable[[Case], tuple[Rows, Rows]]] = {"alike": alike, "gaussian": gaussian, "cloud": cloud}


def data_of(run: Run, case: Case) -> tuple[Rows, Rows]:
    """Return points and queries of a case."""
    found: tuple[Rows, Rows] = run.keep((case.data, case.n, case.m, case.d), lambda: MAKERS[case.data](case))
    return found


def radius_of(run: Run, case: Case, points: Rows, queries: Rows) -> float:
    """Return the radius of a case: its parameter "radius", or the one with "mean" neighbours per query on average."""
    if "radius" in case.parameters:
        return float(case.parameters["radius"])
    mean, some = case.parameters["mean"], queries[:: -(-len(queries) // _SAMPLED)]
    k = min(len(points), 8 * mean)
    values = run.tonari.search(some, points, k, metric=case.metric, **run.options()).distances
    return float(np.partition(values.ravel(), mean * len(some))[mean * len(some)])


def call_of(run: Run, case: Case, points: Rows, queries: Rows, radius: float) -> Callable[[], Any]:
    """Call the public function of the case."""
    tonari, options = run.tonari, {"metric": case.metric} | run.options()
    verb = case.parameters["verb"]
    if verb == "pairs":
        return lambda: tonari.pairs(points, radius, **options)
    find = tonari.radius_count if verb == "count" else tonari.radius_search
    return lambda: find(queries, points, radius, **options)


def workload(run: Run, case: Case) -> Callable[[], Any]:
    """Return a function that runs a case once; comparisons of two versions time it."""
    points, queries = data_of(run, case)
    return call_of(run, case, points, queries, radius_of(run, case, points, queries))


def counts_of(case: Case, answer: Any) -> Any:
    """Return the number of points found for each query; in a self-join, without the query itself."""
    if case.parameters["verb"] == "pairs":
        return np.bincount(answer.left, minlength=case.n) + np.bincount(answer.right, minlength=case.n)
    return answer if case.parameters["verb"] == "count" else np.diff(answer.indptr)


def prove(case: Case, answer: Any, points: Rows, queries: Rows, radius: float) -> int:
    """Compare a sample of rows with the reference; return its size. Raise WrongAnswer if a bit differs."""
    from tonari.core.results.radius_neighbors import limits_for
    from tonari.metrics.reference import brute_within

    verb, count = case.parameters["verb"], min(PROVED_ROWS, len(queries))
    rows = np.sort(np.random.default_rng(12345).choice(len(queries), count, replace=False))
    limits = limits_for(radius, count, np.float32, closed=True, descending=False)
    truth = brute_within(queries[rows], points, limits, case.metric, self_ids=rows if verb == "pairs" else None)
    if not np.array_equal(counts_of(case, answer)[rows], np.diff(truth.indptr)):
        raise WrongAnswer("counts differ from the reference")
    for at, row in enumerate(rows.tolist()):
        own = slice(truth.indptr[at], truth.indptr[at + 1])
        if verb == "search":
            mine = slice(answer.indptr[row], answer.indptr[row + 1])
            same = answer.indices[mine].tobytes() == truth.indices[own].tobytes()
            if not same or answer.distances[mine].tobytes() != truth.distances[own].tobytes():
                raise WrongAnswer(f"row {row} differs from the reference")
        elif verb == "pairs":
            later = truth.indices[own] > row
            mine = slice(*np.searchsorted(answer.left, [row, row + 1]))
            if answer.right[mine].tolist() != truth.indices[own][later].tolist():
                raise WrongAnswer(f"the pairs of row {row} differ from the reference")
    return count


def compare(run: Run, case: Case) -> None:
    """Verify a case, time tonari and the peers, and check the required speed-ups."""
    points, queries = data_of(run, case)
    radius = radius_of(run, case, points, queries)
    call = call_of(run, case, points, queries, radius)
    answer = call()
    proved, counts = prove(case, answer, points, queries, radius), counts_of(case, answer)
    ours = run.time(call)
    measured: dict[str, float] = {}
    facts = []
    with contextlib.ExitStack() as stack:
        for name in case.peers:
            missing = RADIUS_PEERS[name].missing()
            if missing or not run.wants(name):
                facts.append({"who": name, "note": missing or "not wanted"})
                continue
            say(f"{case.name}: {name}")
            peer = stack.enter_context(RunningRadiusPeer(name, points, queries, case.metric, run.threads or 1))
            row, median = _time_peer(run, case, peer, radius, counts)
            measured[name] = median / ours.median
            facts.append(row)
    mean = float(counts.sum()) / len(queries)
    base = {"who": "tonari", "proved": proved, "recall": 1.0, "extras": {"radius": radius, "mean": mean}}
    rows = [base | seconds_of(ours) | verdict for verdict in run.verdicts(case.bars, measured)]
    run.write(case, rows + facts)


def _time_peer(
    run: Run, case: Case, peer: RunningRadiusPeer, radius: float, counts: Any
) -> tuple[dict[str, Any], float]:
    """Time a peer on as many queries as its time allows.

    Return its row, and its median seconds scaled to all queries.
    """
    everyone = len(counts)
    rows = min(everyone, 256)
    pilot = peer.count(rows, radius)
    fitting = int(rows * run.peer_seconds / max(pilot.seconds, 1e-9))
    rows = min(everyone, max(rows, fitting))
    repeats, seconds = (1 if run.peer_seconds > 60 else min(3, run.repeats)), []
    found = pilot
    for _ in range(repeats):
        found = peer.count(rows, radius)
        seconds.append(found.prepare_seconds + found.seconds * everyone / rows)
    theirs = found.counts - (case.parameters["verb"] == "pairs")
    share = 1 - np.abs(theirs - counts[:rows]).sum() / max(1, counts[:rows].sum())
    if share < AGREEING:
        raise WrongAnswer(f"{peer.name} counts others: {share:.6f} of the neighbours agree")
    row = {"who": peer.name, "recall": float(share)} | seconds_of(timing_of(seconds))
    return row | ({"rows_timed": rows} if rows < everyone else {}), statistics.median(seconds)


def _case(name: str, n: int, m: int, d: int, **changes: Any) -> Case:
    return Case(name, "cpu", n, m, d, 1, **{"work": compare} | changes)


def _bar(on: str, bound: float) -> Bar:
    return Bar(on, bound, home="")


SUITE = Suite(
    "radius",
    "radius",
    (
        _case(
            *("pairs-200k", 200_000, 200_000, 384),
            graph=True,
            data="alike",
            metric="cosine",
            parameters={"verb": "pairs", "radius": 0.05},
            peers=("faiss",),
            bars=(_bar("faiss", 12.0),),
            cost=300,
        ),
        _case(
            *("search-20k", 20_000, 2_000, 50),
            parameters={"verb": "search", "mean": 49},
            peers=("sklearn", "ckdtree"),
            bars=(_bar("sklearn", 4.0), _bar("ckdtree", 4.0)),
            cost=20,
        ),
        _case(
            *("cloud-200k", 2_000_000, 200_000, 3),
            data="cloud",
            parameters={"verb": "count", "mean": 15},
            peers=("ckdtree",),
            bars=(_bar("ckdtree", 4.0),),
            cost=60,
        ),
        _case(
            *("cloud-all", 2_000_000, 2_000_000, 3),
            graph=True,
            data="cloud",
            parameters={"verb": "count", "mean": 15},
            peers=("ckdtree",),
            bars=(_bar("ckdtree", 4.0),),
            cost=200,
        ),
    ),
    libraries=("tonari", "numpy", "scipy", "scikit-learn", "faiss-cpu"),
    torch=False,
    workload=workload,
)
