"""Searches with a mask and graphs of many small clouds, compared with calls and loops that a user could write instead.

One call of a public function is timed, from arrays to answer. "gather" copies the allowed points and searches the copy,
"unfiltered" searches all points; the bar refers to the faster of the two. The answer is verified first: a sample of
rows bit for bit against ``tonari.metrics.reference`` among the allowed points. Peers get only the first clouds; their
seconds are scaled, as ``rows_timed`` shows. On a GPU, points and queries are tensors on the device, and the mask is in
host memory, or on the device if the case says so. "index" is a third call there, which copies the allowed points by
torch's ``points[mask]``; the bar refers to the fastest of the three.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from ..harness.case import Bar, Case, Suite
from ..harness.device import timing_of
from ..harness.proof import WrongAnswer
from ..harness.run import Run, seconds_of

PROVED_ROWS = 8
Rows = Any


def masked(case: Case) -> tuple[Rows, Rows, Rows]:
    """Return N(0, 1) points and queries, and a mask that allows a share of the points."""
    rng = np.random.default_rng(0)
    points, queries = (rng.standard_normal((rows, case.d), dtype=np.float32) for rows in (case.n, case.m))
    return points, queries, rng.random(case.n) < case.parameters["share"]


def clouds(case: Case) -> tuple[Rows, Rows, Rows]:
    """Return points that fill unit cubes evenly, and for each point the index of its cube (cloud)."""
    points = np.random.default_rng(0).random((case.n, case.d), dtype=np.float32)
    return points, points, np.arange(case.n) // case.parameters["size"]


def data_of(run: Run, case: Case) -> tuple[Rows, Rows, Rows]:
    """Return the points and queries of a case, and its mask or the cloud index of each point."""
    make = clouds if case.graph else masked
    key = (case.graph, case.n, case.m, case.d, *case.parameters.values())
    found: tuple[Rows, Rows, Rows] = run.keep(key, lambda: make(case))
    return found


def searched(run: Run, case: Case) -> tuple[Rows, Rows, Rows]:
    """Copy points and queries to the GPU, if the search runs there."""
    points, queries, rule = data_of(run, case)
    if case.device == "cpu":
        return points, queries, rule

    def moved() -> tuple[Rows, Rows]:
        import torch

        return torch.from_numpy(points).to(run.where), torch.from_numpy(queries).to(run.where)

    there = run.also("on the device", moved)
    if case.parameters.get("mask_on_device"):
        import torch

        rule = torch.from_numpy(rule).to(run.where)
    return *there, rule


def on_host(answer: Any) -> Any:
    """Return an answer as NumPy arrays."""
    return type(answer)(*(part if isinstance(part, np.ndarray) else part.cpu().numpy() for part in answer))


def workload(run: Run, case: Case) -> Callable[[], Any]:
    """Return a function that runs a case once; comparisons of two versions time it."""
    points, queries, rule = searched(run, case)
    tonari, options = run.tonari, {"metric": case.metric} | run.options()
    if case.graph:
        return lambda: tonari.knn_graph(points, case.k, batch=rule, **options)
    if case.prepared:
        index = tonari.Index(points, **options)
        index.search(queries[:1], case.k)
        return lambda: index.search(queries, case.k, where=rule)
    return lambda: tonari.search(queries, points, case.k, where=rule, **options)


def prove(case: Case, answer: Any, points: Rows, queries: Rows, rule: Rows) -> int:
    """Compare a sample of rows with the reference; return its size. Raise WrongAnswer if a bit differs."""
    from tonari.metrics.reference import brute

    count = min(PROVED_ROWS, len(queries))
    for row in np.random.default_rng(12345).choice(len(queries), count, replace=False).tolist():
        ids = np.flatnonzero(rule == rule[row]) if case.graph else np.flatnonzero(rule)
        own = np.searchsorted(ids, [row]) if case.graph else None
        k = min(case.k, len(ids) - case.graph)
        truth = brute(queries[row : row + 1], points[ids], k, case.metric, self_ids=own)
        same = answer.indices[row, :k].tolist() == ids[truth.indices[0]].tolist()
        if not same or answer.distances[row, :k].tobytes() != truth.distances.tobytes():
            raise WrongAnswer(f"row {row} differs from the reference")
    return count


def compare(run: Run, case: Case) -> None:
    """Verify a search with a mask, time it and the alternatives, and check the required speed-ups."""
    call = workload(run, case)
    proved = prove(case, on_host(call()), *data_of(run, case))
    points, queries, rule = searched(run, case)
    tonari, options = run.tonari, {"metric": case.metric} | run.options()
    index = tonari.Index(points, **options) if case.prepared else None

    def gather() -> Any:
        allowed = points[np.flatnonzero(rule)] if isinstance(points, np.ndarray) else _rows_at(points, rule)
        return tonari.search(queries, allowed, min(case.k, len(allowed)), **options)

    def by_torch() -> Any:
        import torch

        allowed = points[torch.as_tensor(rule)]
        return tonari.search(queries, allowed, min(case.k, len(allowed)), **options)

    def unfiltered() -> Any:
        return tonari.search(queries, points, case.k, **options) if index is None else index.search(queries, case.k)

    unfiltered()
    ways = {"gather": gather, "unfiltered": unfiltered} | ({} if case.device == "cpu" else {"index": by_torch})
    ours, others = run.time(call), {name: run.time(way) for name, way in ways.items()}
    better = min(timing.median for timing in others.values())
    base = {"who": "tonari", "proved": proved, "recall": 1.0} | seconds_of(ours)
    found = [base | verdict for verdict in run.verdicts(case.bars, {"better": ours.median / better})]
    run.write(case, found + [{"who": f"tonari-{name}"} | seconds_of(timing) for name, timing in others.items()])


def _rows_at(points: Any, mask: Any) -> Any:
    """Return the allowed rows of a tensor; their row numbers are computed on the device of the mask."""
    import torch

    if torch.is_tensor(mask):
        return points[mask.nonzero().squeeze(1)]
    return points[torch.from_numpy(np.flatnonzero(mask)).to(points.device)]


def compare_clouds(run: Run, case: Case) -> None:
    """Verify a graph of many clouds, time it and the peers' loops over clouds, and check the required speed-ups."""
    points, _, rule = data_of(run, case)
    call = workload(run, case)
    proved = prove(case, call(), points, points, rule)
    ours, measured, facts = run.time(call), {}, []
    for name in case.peers:
        if run.wants(name):
            row, median = _time_loop(run, case, name, points)
            measured[name] = median / ours.median
            facts.append(row)
    base = {"who": "tonari", "proved": proved, "recall": 1.0} | seconds_of(ours)
    run.write(case, [base | verdict for verdict in run.verdicts(case.bars, measured)] + facts)


def _time_loop(run: Run, case: Case, name: str, points: Rows) -> tuple[dict[str, Any], float]:
    """Time a peer's loop over the first clouds; return its row, and its median seconds scaled to all clouds."""
    from scipy.spatial import cKDTree
    from sklearn.neighbors import NearestNeighbors

    size = case.parameters["size"]
    rows = min(case.n, 1_000 * size)

    def loop() -> None:
        for begin in range(0, rows, size):
            own = points[begin : begin + size]
            if name == "sklearn":
                NearestNeighbors(n_neighbors=case.k).fit(own).kneighbors()
            else:
                cKDTree(own).query(own, case.k + 1)

    seconds = []
    for _ in range(min(3, run.repeats)):
        began = time.perf_counter()
        loop()
        seconds.append((time.perf_counter() - began) * case.n / rows)
    return {"who": name, "rows_timed": rows} | seconds_of(timing_of(seconds)), statistics.median(seconds)


def _case(share: float, *, prepared: bool, m: int = 1_000, device: str = "cpu", there: bool = False) -> Case:
    name = f"{'index' if prepared else 'once'}-{share:g}" + (f"-{m}" if m > 1_000 else "") + "-there" * there
    return Case(
        *(name, device, 1_000_000, m, 128, 10),
        work=compare,
        prepared=prepared,
        parameters={"share": share} | ({"mask_on_device": True} if there else {}),
        bars=(Bar("better", 1.5, most=True, home=""),),
        cost=0.03 * m if device == "cpu" else 30,
    )


_MASKS = [(share, prepared) for share in (0.5, 0.1, 0.01, 0.001) for prepared in (False, True)]


SUITE = Suite(
    "filters",
    "filters",
    (
        *(_case(share, prepared=prepared) for share, prepared in _MASKS),
        *(_case(share, prepared=prepared, m=10_000) for share, prepared in _MASKS),
        *(_case(share, prepared=prepared, m=10_000, device="cuda") for share, prepared in _MASKS),
        *(_case(share, prepared=False, m=10_000, device="cuda", there=True) for share in (0.01, 0.001)),
        Case(
            *("clouds", "cpu", 1_000_000, 1_000_000, 3, 10),
            work=compare_clouds,
            data="cloud",
            graph=True,
            parameters={"size": 100},
            peers=("sklearn", "ckdtree"),
            bars=(Bar("sklearn", 4.0, home=""),),
            cost=60,
        ),
    ),
    libraries=("tonari", "numpy", "scipy", "scikit-learn", "torch", "triton"),
    torch=False,
    workload=workload,
)
