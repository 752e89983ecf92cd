"""Searches, builds and graphs by the k-d tree: verified, timed alternately with other contestants, and judged.

A search is timed on a prepared index, as gieseke2014 times its query phase; the build is a separate case. The proof
compares a sample of rows with tonari.metrics.reference bit for bit, checks the order of all rows, and compares the
answer with that of brute force, on as many queries as brute force has time for. The timed call must return the verified
answer. A contestant that would take too long gets only the first queries; its seconds are scaled, as ``rows_timed``
shows. Each peer has a separate process.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ...harness.case import Case
from ...harness.contest import Build, Ours, Theirs, race, start_peers
from ...harness.datasets import few_dimensions
from ...harness.datasets.hard import DeviceData
from ...harness.device import Timing
from ...harness.peers.cpu import Request
from ...harness.proof import check_rows
from ...harness.proof.neighbors import PROOF, PROVED_ROWS, Answer, as_answer, same
from ...harness.rows import merged
from ...harness.run import LONG, Run, say, seconds_of

TREE, AUTO, EXACT = "tonari kdtree", "tonari auto", "tonari exact"
ANEW = "tonari kdtree, trees built"
SLABS = 8  # number of slabs into which the points are divided; each slab has a tree
# Maximum number of queries for which visits to leaves and nodes are counted.
COUNTED = 4096
# Maximum number of pairs in a proof on a CPU: two cores sort their exact distances in about 20 s. On a GPU there is no
# limit.
PROVED_PAIRS_ON_CPU = 1 << 26


def data_of(run: Run, case: Case) -> DeviceData:
    """Return the points and queries of a case; successive cases share them."""
    shape = (case.data, case.n, case.queries, case.d)
    found: DeviceData = run.keep(shape, lambda: few_dimensions.make(*shape, run.where))
    return found


def proof_of(run: Run, case: Case, data: DeviceData) -> Any:
    """Return the true neighbours of sampled queries, for the largest k of the cases that share the data."""
    k = max(case.k, case.truth_k)

    def make() -> Any:
        count = PROVED_ROWS if run.cuda else max(1, min(PROVED_ROWS, PROVED_PAIRS_ON_CPU // len(data.points)))
        queries = data.points if case.graph else data.queries
        return run.proof(queries, data.points, k, graph=case.graph, count=count)

    return run.also(("truth", case.graph, k), make)


def speed(case: Case, timing: Timing) -> dict[str, Any]:
    """Return the timing of all queries of a case as columns of results."""
    return seconds_of(timing) | {"extras": {"queries_per_s": case.m / timing.median}}


class Planned:
    """Points in a k-d tree that is built by a plan with overrides, which ``tonari.Index`` does not take."""

    def __init__(self, run: Run, case: Case, data: DeviceData, **choices: Any) -> None:
        from tonari.methods.places.place import place_for
        from tonari.methods.registry import method_for

        self._run, self._case, self._choices = run, case, choices
        self._queries = run.device.values(data.points if case.graph else data.queries)
        points = run.device.values(data.points)
        self._place = place_for(run.where, points=points)
        self._method: Any = method_for("kdtree", self._place.device)
        self.plan = self._plan(case.m, case.k)
        self._prepared = self._method.prepare(self._rows(points, "points"), self.plan, False)

    def _plan(self, m: int, k: int, **more: Any) -> Any:
        case, choices = self._case, self._choices | more
        return self._run.tonari.plan(case.n, m, case.d, k, method="kdtree", **place_of(self._run), **choices)

    def _first(self, rows: int) -> Any:
        return self._rows(self._queries[:rows], "queries")

    def _rows(self, x: Any, name: str) -> Any:
        from tonari.metrics import get_metric

        return self._place.rows(x, name, get_metric("euclidean"))

    def call(self, rows: int, k: int, **more: Any) -> Callable[[], Any]:
        """Return a search of the first `rows` queries; `more` has plan overrides that leave the tree unchanged."""
        queries, plan = self._first(rows), self._plan(rows, k, **more)
        return lambda: self._method.search(queries, self._prepared, plan, progress=False)

    def columns(self) -> dict[str, Any]:
        """Return columns about the plan, and the mean numbers of leaves and nodes that a query visits."""
        rows = min(COUNTED, len(self._queries))
        leaves, nodes, _ = self._method.visits(self._first(rows), self._prepared, self._plan(rows, self._case.k))
        plan = {name: getattr(self.plan, name) for name in ("height", "leaf", "sort")}
        if self.plan.buffer:
            plan["buffer"] = self.plan.buffer
        return {"extras": plan | {"leaves": float(leaves), "nodes": float(nodes)}}

    def rounds(self, rows: int, k: int, **more: Any) -> Any:
        """Return the counters of the buffered traversal for the first `rows` queries."""
        plan = self._plan(rows, k, traversal="buffered", **more)
        return self._method.rounds(self._first(rows), self._prepared, plan)


def place_of(run: Run) -> dict[str, Any]:
    """Return the keyword arguments that make a plan for the device of the run."""
    return {"device": run.where} if run.cuda else {"threads": run.threads}


def index_of(run: Run, data: DeviceData, method: str) -> Any:
    """Return a prepared index of a case's points."""
    return run.tonari.Index(run.device.values(data.points), method=method, **run.options())


def searcher(run: Run, case: Case, data: DeviceData, index: Any, rows: int | None = None) -> Callable[[], Any]:
    """Return a search of the first `rows` queries, by default of all."""
    queries = run.device.values(data.queries[:rows])
    return lambda: index.search(queries, case.k, **run.options())


class Found(NamedTuple):
    """A prepared index, its verified answer to all queries, and columns about the proof and the plan."""

    index: Any
    answer: Answer
    facts: dict[str, Any]


def proved(run: Run, case: Case, data: DeviceData) -> Found:
    """Build the tree of a case, search all queries and verify the answer."""
    index = index_of(run, data, "kdtree")
    answer = as_answer(searcher(run, case, data, index)(), run.where)
    rows = run.prove(lambda: proof_of(run, case, data).check(answer, case.k))
    facts = {"proof": PROOF, "proved": rows, "recall": 1.0, "stage": "search"}
    return Found(index, answer, facts | Planned(run, case, data).columns())


def workload(run: Run, case: Case) -> Callable[[], Any]:
    """Return the function that a comparison of two versions calls and times: a graph's build, or a search.

    In a stream, it searches one chunk.
    """
    data = data_of(run, case.resized(m=case.chunk) if case.chunk else case)
    if case.graph:
        points = run.device.values(data.points)
        return lambda: run.tonari.knn_graph(points, case.k, method="kdtree", **run.options())
    return searcher(run, case, data, index_of(run, data, "kdtree"))


def search(run: Run, case: Case) -> None:
    """Verify and time a search by the tree, by brute force, by the peers, and by auto if the case says so."""
    data = data_of(run, case)
    found = proved(run, case, data)
    contestants: list[Any] = [Ours(run, TREE, searcher(run, case, data, found.index), case.m, case.m)]
    if case.exact_rows:
        rows = min(case.m, case.exact_rows)
        exact = index_of(run, data, "exact")
        contestants.append(Ours(run, EXACT, searcher(run, case, data, exact, rows), rows, case.m))
    if case.auto:
        contestants.append(Ours(run, AUTO, searcher(run, case, data, index_of(run, data, "auto")), case.m, case.m))
    with contextlib.ExitStack() as stack:
        contestants += [Theirs(peer, case, case.m, run.peer_seconds) for peer in running_peers(stack, run, case, data)]
        say(f"{case.name}: timing {', '.join(one.name for one in contestants)}")
        timings, recalls = clocked(run, case, data, contestants, found.answer)
    write_rows(run, case, found.facts, contestants, timings, recalls)


def running_peers(stack: contextlib.ExitStack, run: Run, case: Case, data: DeviceData) -> list[Any]:
    """Start the case's peers, each in a separate process. All of them run on the CPU."""
    return [] if run.cuda else start_peers(stack, run, case, data.points.numpy(), data.queries.numpy())


def clocked(
    run: Run, case: Case, data: DeviceData, contestants: Sequence[Any], expected: Answer
) -> tuple[dict[str, Timing], dict[str, float]]:
    """Time all contestants alternately, and verify our answers before and after.

    Return the seconds of each contestant, and the recall of the peers.
    """
    import torch

    recalls: dict[str, float] = {}
    longest = 0.0

    def prove_ours() -> None:
        nonlocal longest
        for one in contestants:
            if isinstance(one, Ours):
                timed = one.run()
                same(as_answer(timed, run.where), expected, one.name)
                longest = max(longest, timed.seconds * one.rows / one.all_rows)

    prove_ours()
    for one in contestants:
        if isinstance(one, Theirs):
            indices = torch.from_numpy(one.run().indices)
            recalls[one.name] = proof_of(run, case, data).recall(indices, case.k)[0]
    timings = race(list(contestants), run.repeats if longest <= LONG else min(3, run.repeats))
    prove_ours()
    return timings, recalls


def write_rows(
    run: Run,
    case: Case,
    facts: dict[str, Any],
    contestants: Sequence[Any],
    timings: dict[str, Timing],
    recalls: dict[str, float],
) -> None:
    """Write a row of the tree for each bar, then a row for each other contestant."""
    mine = timings[TREE]
    # each contestant's seconds divided by the tree's; if a bar requires it, also brute force's divided by auto's
    measured = {"seconds": mine.median} | {name: timing.median / mine.median for name, timing in timings.items()}
    if AUTO in timings and EXACT in timings:
        measured["exact over auto"] = timings[EXACT].median / timings[AUTO].median
    whole = merged(facts, {"who": TREE}, speed(case, mine))
    rows = [whole | verdict for verdict in run.verdicts(case.bars, measured)]
    for one in contestants:
        if one.name == TREE:
            continue
        timing = timings[one.name]
        row = {"who": one.name, "stage": facts["stage"], "ratio": timing.median / mine.median}
        row |= speed(case, timing) | ({"recall": recalls[one.name]} if one.name in recalls else {})
        rows.append(row | ({"rows_timed": one.rows} if one.rows < one.all_rows else {}))
    run.write(case, rows)


def build(run: Run, case: Case) -> None:
    """Time the build of the tree by tonari and by the peers; verify a search of the built tree."""
    data = data_of(run, case)
    found = proved(run, case, data)
    made: list[Any] = [None]

    def make() -> None:
        made[0] = index_of(run, data, "kdtree")

    contestants: list[Any] = [Build(TREE, lambda: run.device.once(make))]
    with contextlib.ExitStack() as stack:
        request = Request(0, 1, case.k, single=False, prepared=False)
        contestants += [
            Build(peer.name, lambda peer=peer: peer.search(request).prepare_seconds)
            for peer in running_peers(stack, run, case, data)
        ]
        timings = race(contestants, run.repeats)
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


def graph(run: Run, case: Case) -> None:
    """Time the graph of a case's points, from rows to neighbours, and the search of all points in a prepared tree."""
    data = data_of(run, case)
    points = run.device.values(data.points)
    contestants = [
        Ours(
            run,
            name,
            lambda method=method: run.tonari.knn_graph(points, case.k, method=method, **run.options()),
            case.m,
            case.m,
        )
        for name, method in ((TREE, "kdtree"), (AUTO, "auto"), (EXACT, "exact"))
        if case.exact_rows or method != "exact"
    ]
    answer = as_answer(contestants[0].run(), run.where)
    rows = run.prove(lambda: proof_of(run, case, data).check(answer, case.k))
    planned = Planned(run, case, data)
    facts = {"proof": PROOF, "proved": rows, "recall": 1.0, "stage": "with build"} | planned.columns()
    timings, _ = clocked(run, case, data, contestants, answer)
    write_rows(run, case, facts, contestants, timings, {})
    # The search shows which share of the graph's time the build takes. Its lists differ from the graph's, since each
    # point finds itself.
    call = planned.call(case.m, case.k)
    found = as_answer(call(), run.where)
    check_rows(*found, case.m, case.n, case.k)
    timing = run.time(call)
    run.write(case, [{"who": TREE, "stage": "search", "note": "itself included"} | speed(case, timing)])


def slabs(run: Run, case: Case) -> None:
    """Time a search of points in slabs, from and to host memory; the trees are built once, or for each search."""
    from tonari.methods.registry import method_for

    data = data_of(run, case)
    points, queries = (rows.cpu().numpy() for rows in (data.points, data.queries))
    size = -(-case.n // SLABS)
    plan = run.tonari.plan(case.n, case.m, case.d, case.k, method="kdtree", point_slab=size, **place_of(run))
    method: Any = method_for("kdtree", "cuda")
    prepared = method.prepare(points, plan, False)
    calls = {
        TREE: lambda: method.search(queries, prepared, plan, progress=False),
        ANEW: lambda: method.search_once(queries, points, plan, progress=False),
    }
    contestants = [Ours(run, name, call, case.m, case.m) for name, call in calls.items()]
    answer = as_answer(contestants[0].run(), run.where)
    rows = run.prove(lambda: proof_of(run, case, data).check(answer, case.k))
    facts = {"proof": PROOF, "proved": rows, "recall": 1.0, "stage": "search", "note": f"{SLABS} slabs of points"}
    facts["extras"] = {"point_slab": plan.point_slab, "kept_bytes": plan.kept_bytes}
    timings, _ = clocked(run, case, data, contestants, answer)
    write_rows(run, case, facts, contestants, timings, {})
