"""Searches among sparse rows on the CPU, compared with sparse_dot_topn, similaripy and scikit-learn.

One call of a public function is timed, from the matrix to the answer; a peer's time includes its preparation.
The answer is verified first, on a sample of rows: a product of SciPy in float64 names all points that may be in a list,
and the exact values of these points, as dense rows, must give the list bit for bit. A peer's values must agree with
ours. A peer that would take longer than --peer-seconds gets only the first queries; the seconds of its call are
scaled, as ``rows_timed`` shows.
"""

from __future__ import annotations

import contextlib
import statistics
from collections.abc import Callable
from typing import Any

import numpy as np

from ..harness.case import Bar, Case, Suite
from ..harness.device import timing_of
from ..harness.peers.sparse import SPARSE_PEERS, RunningSparsePeer, Task
from ..harness.proof import WrongAnswer
from ..harness.run import Run, say, seconds_of

PROVED_ROWS = 24
AGREEING = 0.999  # minimum share of a peer's values that must agree with tonari's
# margin for the candidates of the proof, far above the rounding of the float64 products that find the candidates
_DOUBT = 1e-6
_PILOT_ROWS = 256
_NONZEROS, _CELL_DENSITY, _CELL_TYPES = 65, 0.08, 20
Rows = Any


def texts(case: Case) -> Rows:
    """Return TF-IDF rows of length 1, with word frequencies by Zipf's law and without the most frequent words."""
    from scipy.sparse import coo_array, csr_matrix, diags_array

    rng, left_out = np.random.default_rng(0), case.parameters["left_out"]
    shares = 1 / np.arange(1 + left_out, case.d + 1 + left_out)
    drawn = round(_NONZEROS * (1.25 if left_out == 0 else 1.02))  # more words than needed, because some are drawn twice
    columns = np.searchsorted(np.cumsum(shares / shares.sum()), rng.random((case.n, drawn))).clip(0, case.d - 1)
    owners = np.repeat(np.arange(case.n), drawn)
    counts = coo_array((np.ones(columns.size, np.float32), (owners, columns.ravel())), (case.n, case.d)).tocsr()
    weights = np.log((1 + case.n) / (1 + np.bincount(counts.indices, minlength=case.d))) + 1
    counts.data = (counts.data * weights[counts.indices]).astype(np.float32)
    lengths = np.sqrt(counts.multiply(counts).sum(axis=1))
    rows = csr_matrix(diags_array(1 / lengths) @ counts).astype(np.float32)
    rows.sort_indices()
    return rows


def cells(case: Case) -> Rows:
    """Return gene counts of cells of several types; most counts are 0."""
    from scipy.sparse import csr_matrix, vstack

    rng = np.random.default_rng(0)
    genes = rng.lognormal(0, 1.2, case.d)
    low, high = -10.0, 5.0
    for _ in range(40):
        middle = (low + high) / 2
        dense = (1 - np.exp(-genes * np.exp(middle))).mean() > _CELL_DENSITY
        low, high = (low, middle) if dense else (middle, high)
    rates = 0.9 * genes * np.exp(low) * rng.lognormal(0, 0.7, (_CELL_TYPES, case.d))
    kinds = rng.integers(0, _CELL_TYPES, case.n)
    blocks = (kinds[begin : begin + 1000] for begin in range(0, case.n, 1000))
    return csr_matrix(vstack([csr_matrix(rng.poisson(rates[block]).astype(np.float32)) for block in blocks]))


MAKERS: dict[str, Callable[[Case], Rows]] = {"texts": texts, "cells": cells}


def data_of(run: Run, case: Case) -> Rows:
    """Return the points of a case, which are also its queries."""
    return run.keep((case.data, case.n, case.d, case.parameters.get("left_out")), lambda: MAKERS[case.data](case))


def call_of(run: Run, case: Case, rows: Rows) -> Callable[[], Any]:
    """Call the public function that a case times, once."""
    tonari, options, least = run.tonari, {"metric": case.metric} | run.options(), case.parameters.get("min_similarity")
    if least is None:
        return lambda: tonari.search(rows, rows, case.k, **options)
    return lambda: tonari.radius_search(rows, rows, min_similarity=least, max_neighbors=case.k, **options)


def workload(run: Run, case: Case) -> Callable[[], Any]:
    """Return a function that runs a case once; comparisons of two versions time it."""
    return call_of(run, case, data_of(run, case))


def lists_of(case: Case, answer: Any) -> tuple[Any, Any]:
    """Return an answer's distances and row numbers, (m, k); lists that are shorter are padded with inf and -1."""
    if len(answer) == 2:
        return answer.distances, answer.indices
    counts = np.diff(answer.indptr)
    present = np.arange(case.k) < counts[:, None]
    distances, indices = np.full(present.shape, np.inf, np.float32), np.full(present.shape, -1)
    distances[present], indices[present] = answer.distances, answer.indices
    return distances, indices


def prove(case: Case, answer: Any, rows: Rows) -> int:
    """Compare a sample of lists with the exact values of all their candidates; raise WrongAnswer if a bit differs."""
    from tonari.metrics.reference import brute

    distances, indices = lists_of(case, answer)
    sample = np.sort(np.random.default_rng(12345).choice(case.n, min(PROVED_ROWS, case.n), replace=False))
    wide = rows.astype(np.float64)
    squares = np.asarray(wide.multiply(wide).sum(axis=1)).ravel()
    products = (wide[sample] @ wide.T).toarray()
    least = case.parameters.get("min_similarity")
    for at, row in enumerate(sample.tolist()):
        if case.metric == "cosine":
            near = 1 - products[at] / np.sqrt(squares * squares[row])
        else:
            near = np.sqrt(np.maximum(0, squares + squares[row] - 2 * products[at]))
        last = np.partition(near, case.k - 1)[case.k - 1]
        if least is not None:
            last = min(last, 1 - least)
        among = np.flatnonzero(near <= last + _DOUBT * max(1.0, squares[row]))
        k = min(case.k, len(among))
        if not k:
            continue
        true = brute(rows[[row]].toarray(), rows[among].toarray(), k, case.metric)
        inside = np.ones(k, bool) if least is None else true.distances[0] <= np.float32(1 - least)
        found = indices[row] >= 0
        same = np.array_equal(among[true.indices[0][inside]], indices[row][found])
        if not same or true.distances[0][inside].tobytes() != distances[row][found].tobytes():
            raise WrongAnswer(f"row {row} differs from the reference")
    return len(sample)


def compare(run: Run, case: Case) -> None:
    """Verify a case, time tonari and the peers, and check the required speed-ups."""
    rows = data_of(run, case)
    call = call_of(run, case, rows)
    answer = call()
    proved, (distances, _) = prove(case, answer, rows), lists_of(case, answer)
    ours = run.time(call)
    task = Task(case.metric, case.k, case.parameters.get("min_similarity"))
    measured: dict[str, float] = {}
    facts = []
    with contextlib.ExitStack() as stack:
        for name in case.peers:
            missing = SPARSE_PEERS[name].missing()
            if missing or not run.wants(name):
                facts.append({"who": name, "note": missing or "not wanted"})
                continue
            say(f"{case.name}: {name}")
            peer = stack.enter_context(RunningSparsePeer(name, rows, task, run.threads or 1))
            row, median = _time_peer(run, case, peer, distances)
            measured[name] = median / ours.median
            facts.append(row)
    products = float((np.bincount(rows.indices).astype(np.float64) ** 2).sum()) / case.n**2
    base = {"who": "tonari", "proved": proved, "recall": 1.0, "extras": {"products_per_pair": products}}
    run.write(case, [base | seconds_of(ours) | verdict for verdict in run.verdicts(case.bars, measured)] + facts)


def _time_peer(run: Run, case: Case, peer: RunningSparsePeer, distances: Any) -> tuple[dict[str, Any], float]:
    """Time a peer on as many queries as its time allows.

    Return its row, and its median seconds scaled to all queries.
    """
    rows = min(case.n, _PILOT_ROWS)
    pilot = peer.find(rows)
    rows = min(case.n, max(rows, int(rows * run.peer_seconds / max(pilot.seconds, 1e-9))))
    repeats, seconds = (1 if run.peer_seconds > 60 else min(3, run.repeats)), []
    found = pilot
    for _ in range(repeats):
        found = peer.find(rows)
        seconds.append(found.prepare_seconds + found.seconds * case.n / rows)
    ours = distances[:rows]
    if case.metric == "cosine" and peer.name != "sklearn":
        ours = np.where(np.isinf(ours), 0, 1 - ours)
    share = float(np.isclose(found.values, ours, rtol=1e-4, atol=1e-4).mean())
    if share < AGREEING:
        raise WrongAnswer(f"{peer.name} finds others: {share:.6f} of the values agree")
    row = {"who": peer.name, "recall": share} | seconds_of(timing_of(seconds))
    return row | ({"rows_timed": rows} if rows < case.n else {}), statistics.median(seconds)


def _case(name: str, n: int, d: int, **changes: Any) -> Case:
    options = {"work": compare, "graph": True, "data": "texts", "metric": "cosine", "cost": 120}
    return Case(name, "cpu", n, n, d, 10, **options | changes)


def _texts(name: str, left_out: int, **parameters: float) -> Case:
    bound = 5.0 if parameters else 3.0
    return _case(
        *(name, 50_000, 30_000),
        parameters={"left_out": left_out} | parameters,
        peers=("sparse_dot_topn", "similaripy") if parameters else tuple(SPARSE_PEERS),
        bars=(Bar("sparse_dot_topn", bound, home=""),),
    )


SUITE = Suite(
    "sparse",
    "sparse",
    (
        _texts("texts", 0),
        _texts("texts-alike", 0, min_similarity=0.6),
        _texts("no-stop-words", 100),
        _texts("no-stop-words-alike", 100, min_similarity=0.6),
        _texts("rare-words", 1000),
        _texts("rare-words-alike", 1000, min_similarity=0.6),
        _case(
            *("cells", 30_000, 2_000),
            data="cells",
            metric="euclidean",
            peers=("sklearn",),
            bars=(Bar("sklearn", 4.0, home=""),),
        ),
    ),
    libraries=("tonari", "numpy", "scipy", "scikit-learn", "sparse_dot_topn", "similaripy"),
    torch=False,
    repeats=3,
    workload=workload,
)
