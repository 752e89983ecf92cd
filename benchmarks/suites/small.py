"""Searches of a few microseconds, compared with the fastest libraries: they show the overhead of a call.

All libraries search in this process, in turns. Each is called many times without a pause, so that the clock is
accurate; seconds are per call. Points are uniform in a cube. In prepared cases, all libraries prepare their points;
otherwise a call begins with an array, and builds everything that it needs.

    cKDTree, pykdtree    one thread, default options; pykdtree refuses 128 columns
    sklearn              NearestNeighbors, algorithm="auto"
    faiss                IndexFlatL2, or knn if nothing is prepared; up to MANY pairs on one thread, which is faster

On CUDA there is no peer: the required time is for a repeated call, which replays a captured CUDA graph.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

from ..harness.case import Bar, Case, Suite
from ..harness.device import take_turns
from ..harness.proof import neighbors
from ..harness.run import Run, seconds_of

LOOP_SECONDS = 2e-3  # minimum seconds of successive calls that are timed together
MOST_LOOPS = 1000
PYKDTREE_COLUMNS = 127  # maximum number of columns that pykdtree accepts
TOLERANCE = 1e-4  # allowed relative error of the distances of a peer, which computes them from float32 products
MANY = 10_000_000  # up to this product m n d, FAISS gets one thread, which is then faster
PEERS = ("cKDTree", "pykdtree", "sklearn", "faiss")

Call = Callable[[], Any]


def peers_of(points: Any, queries: Any, k: int, *, prepared: bool, threads: int) -> dict[str, Call]:
    """Return a call for each installed peer, which returns (distances, indices)."""
    calls: dict[str, Call] = {}

    def begin(name: str, module: str, calling: Callable[[Any], Call]) -> None:
        try:
            calls[name] = calling(importlib.import_module(module))
        except ImportError:
            return

    def with_tree(module: Any) -> Call:
        made = getattr(module, "cKDTree", None) or module.KDTree
        tree = made(points) if prepared else None
        return lambda: (made(points) if tree is None else tree).query(queries, k)

    def with_sklearn(module: Any) -> Call:
        def fitted() -> Any:
            return module.NearestNeighbors(n_neighbors=k).fit(points)

        made = fitted() if prepared else None
        return lambda: (fitted() if made is None else made).kneighbors(queries)

    def with_faiss(module: Any) -> Call:
        module.omp_set_num_threads(1 if points.size * len(queries) <= MANY else threads)
        if not prepared:
            return lambda: module.knn(queries, points, k)
        index = module.IndexFlatL2(points.shape[1])
        index.add(points)
        return lambda: index.search(queries, k)

    begin("cKDTree", "scipy.spatial", with_tree)
    if points.shape[1] <= PYKDTREE_COLUMNS:
        begin("pykdtree", "pykdtree.kdtree", with_tree)
    begin("sklearn", "sklearn.neighbors", with_sklearn)
    begin("faiss", "faiss", with_faiss)
    return calls


def search(run: Run, case: Case) -> None:
    """Verify a case, time tonari and its peers alternately, and write a row for each."""
    from tonari.metrics import reference

    tonari = run.tonari
    rng = np.random.default_rng(0)
    points = rng.random((case.n, case.d), dtype=np.float32)
    queries = rng.random((case.m, case.d), dtype=np.float32)
    truth = reference.brute(queries, points, case.k)
    given: dict[str, Any] = {} if run.cuda else {"device": "cpu"}
    held = (points, queries)
    if run.cuda:
        import torch

        held = tuple(torch.from_numpy(part).to(run.where) for part in held)
    index = tonari.Index(held[0], **given) if case.prepared else None

    def ours() -> Any:
        return tonari.search(held[1], held[0], case.k, **given) if index is None else index.search(held[1], case.k)

    answer = neighbors.as_answer(ours(), run.where)
    neighbors.same(answer, neighbors.as_answer(truth, run.where), "tonari")
    calls = {"tonari": ours}
    if not run.cuda:
        calls |= peers_of(points, queries, case.k, prepared=case.prepared, threads=run.threads or 1)
    calls = {who: call for who, call in calls.items() if who == "tonari" or run.wants(who)}
    for who, call in calls.items():
        if who != "tonari":
            check_agreement(who, call(), truth)
    loops = {who: loops_of(run, call) for who, call in calls.items()}
    repeated = {who: repeating(call, loops[who]) for who, call in calls.items()}
    timings = take_turns(run.device, repeated, seconds=0.0, least=run.repeats, most=run.repeats)
    timings = {who: timing.times(1 / loops[who]) for who, timing in timings.items()}
    mine = timings["tonari"].median
    measured = {"seconds": mine} | {who: timing.median / mine for who, timing in timings.items() if who != "tonari"}
    facts = {"who": "tonari", "proof": neighbors.PROOF, "proved": case.m, "extras": {"loops": loops["tonari"]}}
    if index is not None:
        facts["extras"] |= {"method": index.method}
    run.write(case, [facts | seconds_of(timings["tonari"]) | verdict for verdict in run.verdicts(case.bars, measured)])
    for who in list(calls)[1:]:
        ratio = {"ratio": timings[who].median / mine, "extras": {"loops": loops[who]}}
        run.write(case, [{"who": who} | seconds_of(timings[who]) | ratio])


def loops_of(run: Run, call: Call) -> int:
    """Return the number of successive calls that together take LOOP_SECONDS."""
    call()
    return max(1, min(MOST_LOOPS, round(LOOP_SECONDS / max(1e-7, run.time_once(call)))))


def repeating(call: Call, times: int) -> Call:
    """Return a function that calls `call` `loops` times in succession."""

    def loop() -> None:
        for _ in range(times):
            call()

    return loop


def check_agreement(who: str, found: Any, truth: Any) -> None:
    """Raise ValueError if a peer's distances differ from the true ones by more than its rounding."""
    distances = np.asarray(found[0], np.float64).reshape(truth.distances.shape)
    if who == "faiss":
        distances = np.sqrt(np.maximum(distances, 0.0))
    if not np.allclose(distances, truth.distances, rtol=TOLERANCE, atol=TOLERANCE):
        raise ValueError(f"{who} found other distances than the reference")


def workload(run: Run, case: Case) -> Call:
    """Return a function that runs a case once; comparisons of two versions time it."""
    rng = np.random.default_rng(0)
    points, queries = (rng.random((rows, case.d), dtype=np.float32) for rows in (case.n, case.m))
    if not case.prepared:
        return lambda: run.tonari.search(queries, points, case.k)
    index = run.tonari.Index(points)
    return lambda: index.search(queries, case.k)


def _cases() -> list[Case]:
    made = []
    for prepared, m, n, d, bars in (
        (True, 1, 1_000, 3, (Bar("seconds", 15e-6, most=True, home=""), Bar("cKDTree", 1.0, home=""))),
        (True, 100, 1_000, 3, (Bar("seconds", 56e-6, most=True, home=""), Bar("cKDTree", 1.0, home=""))),
        (True, 1, 100_000, 3, (Bar("cKDTree", 1.0, home=""),)),
        (True, 1, 1_000, 10, (Bar("cKDTree", 1.0, home=""),)),
        (True, 1, 1_000, 128, (Bar("faiss", 0.5, home=""),)),
        (True, 100, 1_000, 128, (Bar("faiss", 0.5, home=""),)),
        (False, 1, 1_000, 3, (Bar("cKDTree", 1.0, home=""),)),
        (False, 100, 1_000, 3, (Bar("cKDTree", 1.0, home=""),)),
        (False, 1, 1_000, 128, (Bar("faiss", 0.5, home=""),)),
        (False, 100, 1_000, 128, (Bar("faiss", 0.5, home=""),)),
        (False, 1, 100_000, 128, (Bar("faiss", 1.0, home=""),)),
        (False, 10, 100_000, 128, (Bar("faiss", 1.0, home=""),)),
        (False, 1, 1_000_000, 8, (Bar("faiss", 1.0, home=""),)),
    ):
        name = f"{'index' if prepared else 'search'}-{m}x{n}x{d}"
        made.append(_case(name, "cpu", n, m, d, prepared=prepared, bars=bars, peers=PEERS))
    at_most = Bar("seconds", 40e-6, most=True, home="")
    made.append(_case("index-1x100000x128", "cuda", 100_000, 1, 128, prepared=True, bars=(at_most,)))
    return made


def _case(name: str, device: str, n: int, m: int, d: int, **more: Any) -> Case:
    return Case(name, device, n, m, d, 5, search, data="uniform", cost=10.0, **more)


SUITE = Suite(
    "small",
    "small",
    tuple(_cases()),
    libraries=("numpy", "scipy", "pykdtree", "scikit-learn", "faiss-cpu"),
    workload=workload,
)
