"""Searches and graphs on a GPU: proved, timed, judged, and set beside the peers.

The clock runs from raw float32 tensors on the device to neighbours on the device, everything included: checks,
centring, packing, certificates. A ``prepared`` case has its ``tonari.Index`` made before the clock starts. What the
clock stopped at is compared with the proved answer once more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from .exact_cpu import WrongAnswer
from .exact_gpu_data import DeviceData, make
from .exact_gpu_peers import Peer, without_self
from .exact_gpu_proof import FIRST_ROWS, Answer, as_answer
from .exact_gpu_rows import levels_of, reports, seconds_of
from .select_device import Timing

if TYPE_CHECKING:
    from .exact_gpu_cases import Case
    from .exact_gpu_run import Run

PROOF = "bits of tonari.metrics.reference"


def load(run: Run, case: Case) -> DeviceData:
    """The data of a case; one of single queries has many of them."""
    shape = (case.data, case.n, case.queries, case.d)
    found: DeviceData = run.keep(shape, lambda: make(*shape, run.where))
    return found


def calls_of(tonari: Any, case: Case, data: DeviceData) -> list[Callable[[], Any]]:
    """The workload through the public verbs: one call, or one for each of some single queries."""
    points, queries = data
    if case.graph:
        return [lambda: tonari.knn_graph(points, case.k, progress=False)]
    parts = [queries[i : i + 1] for i in range(len(queries))] if case.single else [queries]
    if case.prepared:
        index = tonari.Index(points, progress=False)
        return [lambda part=part: index.search(part, case.k, progress=False) for part in parts]
    return [lambda part=part: tonari.search(part, points, case.k, progress=False) for part in parts]


def proved_and_timed(
    run: Run, case: Case, calls: Sequence[Callable[[], Any]], proof: Any
) -> tuple[Timing, dict[str, Any]]:
    """Prove what all calls return, time the first, and see that it returns the same again; columns about both."""
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
    facts = {"proof": PROOF, "proved": proved, "recall": 1.0, "rungs": levels_of(seen)}
    return timing, facts | run.speed(case, timing)


def search(run: Run, case: Case) -> None:
    """A search or a graph, ours and theirs."""
    data = load(run, case)
    proof = run.proof(case, data)
    seconds = ours(run, case, data, proof)
    if case.prepared:
        timing = run.time(lambda: run.tonari.Index(data.points, progress=False))
        run.write(case, [{"who": "tonari.Index", **seconds_of(timing)}])
    if case.screened:
        from .exact_gpu_screen import screen_rows

        screen_rows(run, case, data)
    against(run, case, data, proof, seconds)


def ours(run: Run, case: Case, data: DeviceData, proof: Any) -> float:
    """Prove and time tonari on a case; its median of seconds."""
    timing, facts = proved_and_timed(run, case, calls_of(run.tonari, case, data), proof)
    facts["who"] = "tonari"
    measured = {"seconds": timing.median}
    if case.single:
        rate = 2 * case.n * case.d / timing.median
        measured["of copy"] = rate / run.ceilings.copy()
        facts |= {"gbps": rate / 1e9, "fraction_copy": measured["of copy"]}
    run.write(case, [facts | verdict for verdict in run.verdicts(case.bars, measured)])
    return timing.median


def against(run: Run, case: Case, data: DeviceData, proof: Any, seconds: float) -> None:
    """Time the peers on a case; then the verdicts on bars that name peers, of which the fastest counts."""
    found: dict[str, float] = {}
    for peer in run.peers_of(case):

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
            verdict = bar.verdict(min(rivals) / seconds, run.shared["machine"], run.scale)
            run.write(case, [facts | {"spread": 0.0, "ratio": verdict["value"]} | verdict])


def rival(run: Run, case: Case, peer: Peer, data: DeviceData, proof: Any, seconds: float) -> float:
    """Time one peer, on a slice of the queries where it would take too long; its seconds for all of them."""
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
    share = case.m / rows
    timing = timing._replace(median=timing.median * share, least=timing.least * share, most=timing.most * share)
    facts = {"who": peer.name, "dtype": peer.dtype, "recall": recall, "proved": seen, "ratio": timing.median / seconds}
    if rows < case.m:
        facts["rows_timed"] = rows
    run.write(case, [facts | run.speed(case, timing)])
    return timing.median


def slice_of(run: Run, case: Case, call: Callable[[int], Any]) -> int:
    """Queries that a peer answers within the run's limit: all, or so many blocks of FIRST_ROWS."""
    if case.m <= 2 * FIRST_ROWS:
        return case.m
    call(FIRST_ROWS)
    blocks = case.m / FIRST_ROWS
    possible = run.peer_seconds / run.time_once(lambda: call(FIRST_ROWS))
    return case.m if possible >= blocks else max(1, int(possible)) * FIRST_ROWS
