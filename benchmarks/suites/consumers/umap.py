"""The neighbours that UMAP starts with, by tonari and by pynndescent (as umap-learn), in warm and fresh processes.

tonari's are ``tonari.knn_graph(points, 14).to_umap()``, exact and by NN-Descent; NN-Descent gets the recall that was
measured for pynndescent as ``recall=``. Distances are verified on a sample of points, and exact lists by comparison
with the exact engine, which is verified itself.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from ...harness import children
from ...harness.case import Case
from ...harness.device import take_turns, timing_of
from ...harness.peers import graphs
from ...harness.peers.graphs import PYNNDESCENT
from ...harness.proof import WrongAnswer, neighbors
from ...harness.proof.graph import GraphTruth
from ...harness.run import Run, seconds_of
from .data import points_of

EXACT, DESCENT = "tonari exact", "tonari nn_descent"
BESIDE_EXACT, BESIDE_RECALL = PYNNDESCENT, f"{PYNNDESCENT} at its recall"  # the quantities that have bars
OF_RECALL = f"recall over {PYNNDESCENT}'s"
PROOF = "distances of tonari.metrics.reference"
SAMPLE = 2000  # number of points on which recall is measured
ROUNDS = 2  # maximum number of fresh processes per contestant: pynndescent compiles for half a minute in each


def settings_of(case: Case) -> dict[str, Any]:
    """Return the arguments that umap-learn 0.5.12 passes to NNDescent for n points; its k includes the point itself."""
    counted = {"n_neighbors": case.k + 1}
    if case.parameters.get("defaults"):
        return counted
    return counted | {
        "n_trees": min(64, 5 + round(case.n**0.5 / 20)),
        "n_iters": max(5, round(float(np.log2(case.n)))),
        "max_candidates": 60,
        "low_memory": True,
        "compressed": False,
    }


def why_alone(run: Run, case: Case) -> str | None:
    """Return the reason why tonari is measured without pynndescent; None if both are measured."""
    wanted = PYNNDESCENT in case.peers and run.wants(PYNNDESCENT)
    return graphs.missing(PYNNDESCENT) if wanted else "not wanted"


def step(tonari: Any, points: Any, k: int, options: dict[str, Any]) -> Any:
    """Build the k-NN graph; return its indices and distances in the form that UMAP takes."""
    return tonari.knn_graph(points, k, **options).to_umap()


def call(run: Run, case: Case, **options: Any) -> Callable[[], Any]:
    """Return the call by which tonari builds the neighbours of a case."""
    points = points_of(run, case)
    return lambda: step(run.tonari, points, case.k, run.options() | options)


# --- in a warm process --------------------------------------------------------------------------------------------


def layout(run: Run, case: Case) -> None:
    """Verify and time the neighbours of UMAP; write a row for each contestant."""
    import torch

    points = points_of(run, case)
    truth = GraphTruth(run.tonari, torch.from_numpy(points), case.k, SAMPLE, run.device.values, run.options())
    facts = {EXACT: proved(truth, call(run, case)(), case.k, exact=True)}
    calls: dict[str, Callable[[], object]] = {EXACT: call(run, case)}
    why_not = why_alone(run, case)
    if why_not:
        timings = take_turns(run.device, calls, seconds=0.0, least=run.repeats, most=run.repeats)
        run.write(case, [{"who": EXACT} | facts[EXACT] | seconds_of(timings[EXACT])])
        run.write(case, [{"who": PYNNDESCENT, "note": why_not}])
        return
    settings = settings_of(case)
    with graphs.Pynndescent(points, run.threads or 1) as peer:
        theirs = {"parameters": settings, "extras": {"compile_seconds": peer.warm(settings)}}
        peer.build(settings)
        facts[PYNNDESCENT] = theirs | recall_of(truth, peer.lists(truth.rows), case.k)
        target = facts[PYNNDESCENT]["recall"]
        given = {"method": "nn-descent", "recall": target}
        calls |= {DESCENT: call(run, case, **given), PYNNDESCENT: lambda: peer.build(settings)}
        found = proved(truth, calls[DESCENT](), case.k, exact=False)
        facts[DESCENT] = {"parameters": {"recall": target}} | found
        timings = take_turns(run.device, calls, seconds=0.0, least=run.repeats, most=run.repeats, settle=True)
    seconds = timings[PYNNDESCENT].median
    measured = {
        EXACT: {BESIDE_EXACT: seconds / timings[EXACT].median},
        DESCENT: {BESIDE_RECALL: seconds / timings[DESCENT].median, OF_RECALL: found["recall"] / target},
        PYNNDESCENT: {},
    }
    for who, values in measured.items():
        base = {"who": who} | facts[who] | seconds_of(timings[who])
        run.write(case, [base | verdict for verdict in run.verdicts(case.bars, values)])


def proved(truth: GraphTruth, found: Any, k: int, *, exact: bool) -> dict[str, Any]:
    """Return columns about the lists for UMAP; raise WrongAnswer if a distance or an exact neighbour is wrong."""
    indices, distances = (part[truth.rows] for part in found)
    if (indices[:, 0] != truth.rows).any() or distances[:, 0].any():
        raise WrongAnswer("a list does not begin with the point itself at distance 0")
    indices, distances = indices[:, 1:], distances[:, 1:]
    if (indices == truth.rows[:, None]).any():
        raise WrongAnswer("a list names the point itself among its neighbours")
    if exact:
        neighbors.same((distances, indices), truth.nearest, EXACT)
    elif (distances != truth.values_of(indices)).any():
        raise WrongAnswer("a distance is not that of its point")
    return {"proof": PROOF} | recall_of(truth, indices, k)


def recall_of(truth: GraphTruth, lists: Any, k: int) -> dict[str, Any]:
    """Return columns about the recall of the lists on the sampled points."""
    found = truth.recall(lists, k)
    recall = {"recall": found.by_distance, "recall_low": found.low, "recall_high": found.high}
    return {"proved": len(lists)} | recall


# --- in a fresh process -------------------------------------------------------------------------------------------


def first(run: Run, case: Case) -> None:
    """Time UMAP's neighbours in fresh processes, alternately for each contestant; write a row for each."""
    threads, why_not = run.threads or 1, why_alone(run, case)
    variables = children.blas_environment(threads, None) | {"NUMBA_NUM_THREADS": str(threads)}
    seconds: dict[str, list[float]] = {EXACT: []}
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "points.npy")
        np.save(path, points_of(run, case))
        works: dict[str, tuple[Any, ...]] = {EXACT: (first_step, path, case.k, threads)}
        if not why_not:
            works[PYNNDESCENT] = (graphs.first_pynndescent, path, settings_of(case), threads)
            seconds[PYNNDESCENT] = []
            children.first_call(*works[PYNNDESCENT], variables=variables)  # fills the cache that numba keeps on disk
        for _ in range(min(ROUNDS, run.repeats)):
            for who, work in works.items():
                run.device.settle()
                seconds[who].append(children.first_call(*work, variables=variables))
    timings = {who: timing_of(found) for who, found in seconds.items()}
    base = {"who": EXACT} | seconds_of(timings[EXACT])
    if why_not:
        run.write(case, [base, {"who": PYNNDESCENT, "note": why_not}])
        return
    ratio = timings[PYNNDESCENT].median / timings[EXACT].median
    run.write(case, [base | verdict for verdict in run.verdicts(case.bars, {PYNNDESCENT: ratio})])
    theirs = {"who": PYNNDESCENT, "parameters": settings_of(case), "ratio": ratio}
    run.write(case, [theirs | seconds_of(timings[PYNNDESCENT])])


def first_step(path: str, k: int, threads: int) -> None:
    """Import tonari and find UMAP's neighbours of the points in a file; a fresh process runs this function."""
    import tonari

    step(tonari, np.load(path), k, {"threads": threads, "progress": False})
