"""Searches, builds and graphs by the k-d tree: proved, timed in turns with those they are measured against, judged.

A search is timed on a prepared index, as the paper times its query phase; the build is a case of its own. What is
proved: the bits of tonari.metrics.reference on a sample of rows, the order of all rows, the bits of brute force on the
slice that it is given, and that what the clock stopped at is what was proved. A contestant that would take too long is
given the first queries only; its seconds are scaled and ``rows_timed`` says so. Peers have a process of their own.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from . import peers
from .exact_cpu import Theirs, Timed, WrongAnswer, take_turns
from .exact_gpu_data import DeviceData
from .exact_gpu_proof import Answer, as_answer, check_rows
from .exact_gpu_rows import seconds_of
from .exact_gpu_run import LONG, say
from .select_device import Timing

if TYPE_CHECKING:
    from .kdtree_cases import Case
    from .kdtree_run import TreeRun

PROOF = "bits of tonari.metrics.reference"
TREE, AUTO, EXACT = "tonari kdtree", "tonari auto", "tonari exact"
# Queries whose visits are counted.
COUNTED = 4096


class Ours:
    """tonari on the first ``rows`` queries of a case; seconds are scaled to all of them."""

    def __init__(self, run: TreeRun, name: str, call: Callable[[], Any], rows: int, all_rows: int) -> None:
        self.name, self.rows, self.all_rows = name, rows, all_rows
        self._run, self._call = run, call

    def run(self) -> Timed:
        """Do it once."""
        last: list[Any] = [None]

        def call() -> None:
            last[0] = self._call()

        seconds = self._run.device.once(call)
        return Timed(seconds * self.all_rows / self.rows, *as_answer(last[0], self._run.where))


class Build:
    """The making of an index, of which nothing is asked."""

    def __init__(self, name: str, seconds: Callable[[], float]) -> None:
        self.name, self._seconds = name, seconds

    def run(self) -> Timed:
        """Build once."""
        return Timed(self._seconds(), np.empty(0), np.empty(0))


class Planned:
    """Points in a tree by a plan with overrides, which ``tonari.Index`` has no argument for; and what is visited."""

    def __init__(self, run: TreeRun, case: Case, data: DeviceData, **choices: Any) -> None:
        from tonari.methods.registry import method_for
        from tonari.methods.where import place_for

        self._run, self._case, self._choices = run, case, choices
        self._queries = run.device.values(data.points if case.graph else data.queries)
        points = run.device.values(data.points)
        self._place = place_for(run.where, points=points)
        self._method: Any = method_for("kdtree", self._place.device)
        self.plan = self._plan(case.m, case.k)
        self._prepared = self._method.prepare(self._place.rows(points, "points", "euclidean"), self.plan, False)

    def _plan(self, m: int, k: int) -> Any:
        case = self._case
        return self._run.tonari.plan(case.n, m, case.d, k, method="kdtree", **place_of(self._run), **self._choices)

    def call(self, rows: int, k: int) -> Callable[[], Any]:
        """A search of the first so many queries."""
        queries, plan = self._place.rows(self._queries[:rows], "queries", "euclidean"), self._plan(rows, k)
        return lambda: self._method.search(queries, self._prepared, plan, progress=False)

    def columns(self) -> dict[str, Any]:
        """Columns about the plan, and what a query visits on average over the first ones."""
        rows = min(COUNTED, len(self._queries))
        queries = self._place.rows(self._queries[:rows], "queries", "euclidean")
        leaves, nodes, _ = self._method.visits(queries, self._prepared, self._plan(rows, self._case.k))
        plan = {"height": self.plan.height, "leaf": self.plan.leaf, "sort": self.plan.sort}
        return plan | {"leaves": float(leaves), "nodes": float(nodes)}


def place_of(run: TreeRun) -> dict[str, Any]:
    """Arguments of a plan that say where."""
    return {"device": run.where} if run.cuda else {"threads": run.threads}


def options_of(run: TreeRun) -> dict[str, Any]:
    """Arguments that every call of ours has."""
    return {"progress": False} | ({} if run.cuda else {"threads": run.threads})


def index_of(run: TreeRun, data: DeviceData, method: str) -> Any:
    """A prepared index of a case's points."""
    return run.tonari.Index(run.device.values(data.points), method=method, **options_of(run))


def searcher(run: TreeRun, case: Case, data: DeviceData, index: Any, rows: int | None = None) -> Callable[[], Any]:
    """A search of the first `rows` queries, or all."""
    queries = run.device.values(data.queries[:rows])
    return lambda: index.search(queries, case.k, **options_of(run))


class Found(NamedTuple):
    """An index of the tree, what it found, and columns about the proof and the plan."""

    index: Any
    answer: Answer
    facts: dict[str, Any]


def proved(run: TreeRun, case: Case, data: DeviceData) -> Found:
    """Search by the tree and prove what it found."""
    index = index_of(run, data, "kdtree")
    answer = as_answer(searcher(run, case, data, index)(), run.where)
    rows = run.prove(lambda: run.proof(case, data).check(answer, case.k))
    facts = {"proof": PROOF, "proved": rows, "recall": 1.0, "stage": "search"}
    return Found(index, answer, facts | Planned(run, case, data).columns())


def same(found: Any, expected: Any, who: str) -> None:
    """Raise WrongAnswer unless an answer has these bits, as far as its rows and ranks go."""
    rows, k = found[1].shape
    for name, ours, true in zip(("distance", "index"), found, expected, strict=True):
        wrong = (ours != true[:rows, :k]).any(dim=1)
        if bool(wrong.any()):
            raise WrongAnswer(f"{who}: {name} of row {int(wrong.int().argmax())} is another than the proved one")


def search(run: TreeRun, case: Case) -> None:
    """A case's search by the tree, by brute force, by auto where it is asked for, and by the peers."""
    data = run.data(case)
    found = proved(run, case, data)
    contestants: list[Any] = [Ours(run, TREE, searcher(run, case, data, found.index), case.m, case.m)]
    if case.exact_rows:
        rows = min(case.m, case.exact_rows)
        exact = index_of(run, data, "exact")
        contestants.append(Ours(run, EXACT, searcher(run, case, data, exact, rows), rows, case.m))
    if case.auto:
        contestants.append(Ours(run, AUTO, searcher(run, case, data, index_of(run, data, "auto")), case.m, case.m))
    with contextlib.ExitStack() as stack:
        contestants += [
            Theirs(peer, case, case.m, run.peer_seconds)  # type: ignore[arg-type]
            for peer in running_peers(stack, run, case, data)
        ]
        say(f"{case.name}: timing {', '.join(one.name for one in contestants)}")
        timings, recalls = clocked(run, case, data, contestants, found.answer)
    write_rows(run, case, found.facts, contestants, timings, recalls)


def running_peers(stack: contextlib.ExitStack, run: TreeRun, case: Case, data: DeviceData) -> list[peers.RunningPeer]:
    """The case's peers, each in a process of its own; a row says of others why not. All are for processors."""
    found = []
    for name in () if run.cuda else case.peers:
        missing = peers.PEERS[name].missing()
        if missing:
            run.write(case, [{"who": name, "note": missing}])
            continue
        points, queries = data.points.numpy(), data.queries.numpy()
        peer = peers.RunningPeer(name, points, queries, "euclidean", run.threads or 1, None)
        found.append(stack.enter_context(peer))
    return found


def clocked(
    run: TreeRun, case: Case, data: DeviceData, contestants: Sequence[Any], expected: Answer
) -> tuple[dict[str, Timing], dict[str, float]]:
    """Seconds of everyone in turns, ours proved before and after; and the recall of the peers."""
    import torch

    recalls: dict[str, float] = {}
    longest = 0.0

    def prove_ours() -> None:
        nonlocal longest
        for one in contestants:
            if isinstance(one, Ours):
                timed = one.run()
                same(timed[1:], expected, one.name)
                longest = max(longest, timed.seconds * one.rows / one.all_rows)

    prove_ours()
    for one in contestants:
        if isinstance(one, Theirs):
            indices = torch.from_numpy(one.run().indices)
            recalls[one.name] = run.proof(case, data).recall(indices, case.k)[0]
    seconds = take_turns(list(contestants), run.repeats if longest <= LONG else min(3, run.repeats))
    prove_ours()
    return {name: timing_of(times) for name, times in seconds.items()}, recalls


def timing_of(times: Sequence[float]) -> Timing:
    """What some seconds say."""
    return Timing(float(np.median(times)), min(times), max(times), len(times))


def write_rows(
    run: TreeRun,
    case: Case,
    facts: dict[str, Any],
    contestants: Sequence[Any],
    timings: dict[str, Timing],
    recalls: dict[str, float],
) -> None:
    """A row of the tree for each bar, then one for everyone else."""
    mine = timings[TREE]
    # A contestant's time over the tree's; brute force's over auto's where that is what a bar is on.
    measured = {"seconds": mine.median} | {name: timing.median / mine.median for name, timing in timings.items()}
    if AUTO in timings and EXACT in timings:
        measured["exact over auto"] = timings[EXACT].median / timings[AUTO].median
    whole = facts | {"who": TREE} | run.speed(case, mine)
    rows = [whole | verdict for verdict in run.verdicts(case.bars, measured)]
    for one in contestants:
        if one.name == TREE:
            continue
        timing = timings[one.name]
        row = {"who": one.name, "stage": facts["stage"], "ratio": timing.median / mine.median}
        row |= run.speed(case, timing) | ({"recall": recalls[one.name]} if one.name in recalls else {})
        rows.append(row | ({"rows_timed": one.rows} if one.rows < one.all_rows else {}))
    run.write(case, rows)


def build(run: TreeRun, case: Case) -> None:
    """The making of the tree, ours and the peers'; it is proved by a search on what was made."""
    data = run.data(case)
    found = proved(run, case, data)
    made: list[Any] = [None]

    def make() -> None:
        made[0] = index_of(run, data, "kdtree")

    contestants: list[Any] = [Build(TREE, lambda: run.device.once(make))]
    with contextlib.ExitStack() as stack:
        request = peers.Request(0, 1, case.k, single=False, prepared=False)
        contestants += [
            Build(peer.name, lambda peer=peer: peer.search(request).prepare_seconds)
            for peer in running_peers(stack, run, case, data)
        ]
        timings = {name: timing_of(times) for name, times in take_turns(contestants, run.repeats).items()}
    same(as_answer(searcher(run, case, data, made[0])(), run.where), found.answer, "the tree that was built last")
    mine = timings.pop(TREE)
    measured = {"seconds": mine.median} | {name: timing.median / mine.median for name, timing in timings.items()}
    facts = found.facts | {"who": TREE, "stage": "build"} | seconds_of(mine)
    rows = [facts | verdict for verdict in run.verdicts(case.bars, measured)]
    rows += [
        {"who": name, "stage": "build", "ratio": timing.median / mine.median} | seconds_of(timing)
        for name, timing in timings.items()
    ]
    run.write(case, rows)


def graph(run: TreeRun, case: Case) -> None:
    """The graph of a case's points, from rows to neighbours; and the same search on points prepared before."""
    data = run.data(case)
    points = run.device.values(data.points)
    contestants = [
        Ours(
            run,
            name,
            lambda method=method: run.tonari.knn_graph(points, case.k, method=method, **options_of(run)),
            case.m,
            case.m,
        )
        for name, method in ((TREE, "kdtree"), (AUTO, "auto"), (EXACT, "exact"))
        if case.exact_rows or method != "exact"
    ]
    answer = Answer(*contestants[0].run()[1:])
    rows = run.prove(lambda: run.proof(case, data).check(answer, case.k))
    planned = Planned(run, case, data)
    facts = {"proof": PROOF, "proved": rows, "recall": 1.0, "stage": "with build"} | planned.columns()
    timings, _ = clocked(run, case, data, contestants, answer)
    write_rows(run, case, facts, contestants, timings, {})
    # Not the same rows: each point finds itself here. What is asked for is how much of the time is the build's.
    call = planned.call(case.m, case.k)
    found = as_answer(call(), run.where)
    check_rows(found, case.m, case.n, case.k, graph=False)
    timing = run.time(call)
    run.write(case, [{"who": TREE, "stage": "search", "note": "itself included"} | run.speed(case, timing)])
