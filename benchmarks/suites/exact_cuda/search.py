"""Searches and graphs on a GPU: verified, timed, judged, and compared with the peers.

The time is from raw float32 tensors on the device to neighbours on the device, with all steps: checks, centring,
packing, certificates. In a ``prepared`` case, the ``tonari.Index`` is made before the clock starts. The answer of the
timed call is compared with the verified answer again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...harness.case import Case
from ...harness.datasets.hard import DeviceData, make
from ...harness.device import Timing
from ...harness.peers.cuda import PEERS, Peer
from ...harness.proof import WrongAnswer, without_self
from ...harness.proof.neighbors import FIRST_ROWS, PROOF, Answer, as_answer
from ...harness.run import Run, seconds_of
from .reports import levels_of, reports
from .screen import screen_rows
from .speed import speed


def load(run: Run, case: Case) -> DeviceData:
    """Return the points and queries of a case; successive cases share them."""
    shape = (case.data, case.n, case.queries, case.d)
    found: DeviceData = run.keep(shape, lambda: make(*shape, run.where))
    return found


def proof_of(run: Run, case: Case, data: DeviceData) -> Any:
    """Return the true neighbours of sampled queries, for the largest k of the cases that share the data."""
    k = max(case.k, case.truth_k)

    def make_proof() -> Any:
        queries = data.points if case.graph else data.queries
        return run.proof(queries, data.points, k, graph=case.graph)

    return run.also(("truth", case.graph, k), make_proof)


def workload(run: Run, case: Case) -> Callable[[], Any]:
    """Return a function that runs a case once; comparisons of two versions time it."""
    return calls_of(run.tonari, case, load(run, case))[0]


def calls_of(tonari: Any, case: Case, data: DeviceData) -> list[Callable[[], Any]]:
    """Return the calls of the public functions that are timed: one call, or one for each single query."""
    points, queries = data
    options: dict[str, Any] = {"metric": case.metric, "progress": False}
    if case.graph:
        return [lambda: tonari.knn_graph(points, case.k, **options)]
    parts = [queries[i : i + 1] for i in range(len(queries))] if case.single else [queries]
    if case.prepared:
        index = tonari.Index(points, **options)
        return [lambda part=part: index.search(part, case.k, progress=False) for part in parts]
    return [lambda part=part: tonari.search(part, points, case.k, **options) for part in parts]


def proved_and_timed(
    run: Run, case: Case, calls: Sequence[Callable[[], Any]], proof: Any
) -> tuple[Timing, dict[str, Any]]:
    """Verify the answers of all calls, time the first call and check its answer again; return its row's columns."""
    import torch

    with reports() as seen:
        answers = [as_answer(call(), run.where) for call in calls]
    whole = Answer(*(torch.cat(parts) if len(parts) > 1 else parts[0] for parts in zip(*answers, strict=True)))
    proved = run.prove(lambda: proof.check(whole, case.k))
    last: list[Any] = [None]

    def call() -> None:
        last[0] = calls[0]()

    timing = run.time(call, loops=case.loops)
    for one, again in zip(answers[0], as_answer(last[0], run.where), strict=True):
        if not torch.equal(one, again):
            raise WrongAnswer("the timed answer is another than the proved one")
    facts = {"proof": PROOF, "proved": proved, "recall": 1.0} | seconds_of(timing)
    return timing, facts | {"extras": {"levels": levels_of(seen)} | speed(run, case, timing)}


def search(run: Run, case: Case) -> None:
    """Verify and time a search or a graph by tonari and by its peers."""
    data = load(run, case)
    proof = proof_of(run, case, data)
    seconds = ours(run, case, data, proof)
    if case.prepared:
        timing = run.time(lambda: run.tonari.Index(data.points, progress=False))
        run.write(case, [{"who": "tonari.Index", **seconds_of(timing)}])
    if case.screened:
        screen_rows(run, case, data)
    against(run, case, data, proof, seconds)


def ours(run: Run, case: Case, data: DeviceData, proof: Any) -> float:
    """Verify and time tonari on a case, write its rows, and return the median of its seconds."""
    timing, facts = proved_and_timed(run, case, calls_of(run.tonari, case, data), proof)
    facts["who"] = "tonari"
    measured = {"seconds": timing.median}
    if case.single:
        rate = 2 * case.n * case.d / timing.median
        measured["of copy"] = rate / run.ceilings.copy()
        facts["extras"] |= {"gbps": rate / 1e9, "fraction_copy": measured["of copy"]}
    run.write(case, [facts | verdict for verdict in run.verdicts(case.bars, measured)])
    return timing.median


def against(run: Run, case: Case, data: DeviceData, proof: Any, seconds: float) -> None:
    """Time the peers on a case; return verdicts on the bars that refer to the fastest peer."""
    found: dict[str, float] = {}
    for name in case.peers:
        if not run.wants(name):
            continue
        peer = PEERS[name]

        def work(peer: Peer = peer) -> None:
            found[peer.name] = rival(run, case, peer, data, proof, seconds)

        missing = peer.missing()
        if missing:
            run.write(case, [{"who": peer.name, "note": missing}])
        else:
            run.guarded(case, peer.name, work)
        run.free()
    for bar in case.bars:
        rivals = [time for name, time in found.items() if name.startswith(bar.on)]
        if rivals:
            facts = {"who": "tonari", "seconds_median": seconds, "seconds_min": seconds, "seconds_max": seconds}
            verdict = bar.verdict(min(rivals) / seconds, judged=run.judges(bar))
            run.write(case, [facts | {"ratio": verdict["value"]} | verdict])


def rival(run: Run, case: Case, peer: Peer, data: DeviceData, proof: Any, seconds: float) -> float:
    """Time one peer, if necessary on some of the queries; return its seconds, scaled to all queries."""
    points = peer.rows(data.points)
    queries = points if case.graph else peer.rows(data.queries)[: case.m]
    k = case.k + case.graph
    kept = peer.prepare(points) if case.prepared else None

    def call(rows: int) -> Any:
        return (kept or peer.prepare(points))(queries[:rows], k)

    rows = slice_of(run, case, call)
    indices = call(rows)
    recall, seen = proof.recall(without_self(indices) if case.graph else indices, case.k)
    del indices
    timing = run.time(lambda: call(rows), loops=case.loops)
    timing = timing.times(case.m / rows)
    facts = {"who": peer.name, "dtype": peer.dtype, "recall": recall, "proved": seen, "ratio": timing.median / seconds}
    if rows < case.m:
        facts["rows_timed"] = rows
    run.write(case, [facts | seconds_of(timing) | {"extras": speed(run, case, timing)}])
    return timing.median


def slice_of(run: Run, case: Case, call: Callable[[int], Any]) -> int:
    """Return the queries for which a peer has time: all, or a whole number of blocks of FIRST_ROWS."""
    if case.m <= 2 * FIRST_ROWS:
        return case.m
    call(FIRST_ROWS)
    blocks = case.m / FIRST_ROWS
    possible = run.peer_seconds / run.time_once(lambda: call(FIRST_ROWS))
    return case.m if possible >= blocks else max(1, int(possible)) * FIRST_ROWS
