"""The walk compared with the buffered traversal of the same tree, and the phases of the buffered traversal.

`compare` times the walk, the buffered traversal and brute force alternately. First, each traversal uses a tree of the
height that tonari chooses for it, with queries sorted by their first leaf and in their original order. Then both
traversals use the same tree, for several heights.

`phases` has the paper's figures 4 and 3 (b): the seconds for finding leaves, for comparing queries with leaves, and on
CUDA for sorting the waiting queries, against the number of queries. On a processor, the seconds of a phase are summed
over all threads and divided by their number.
"""

from __future__ import annotations

from typing import Any

from ...harness.case import Case
from ...harness.contest import Ours
from ...harness.datasets.hard import DeviceData
from ...harness.proof.neighbors import PROOF, Answer, as_answer, same
from ...harness.rows import merged
from ...harness.run import Run
from ...suites.kdtree.search import (
    EXACT,
    TREE,
    Planned,
    clocked,
    data_of,
    index_of,
    proved,
    searcher,
    speed,
    write_rows,
)
from .figures import BUFFERED, QUERY_SHARES

HEIGHTS = (8, 11, 14)  # tried heights of the tree; 8 is the paper's
AS_THEY_CAME = "as they came"


def compare(run: Run, case: Case) -> None:
    """Time both traversals and brute force alternately: the case `rounds`."""
    data = data_of(run, case)
    found = proved(run, case, data)
    walk, buffered = (Planned(run, case, data, traversal=traversal) for traversal in ("walk", "buffered"))

    def ours(name: str, by: Planned, **more: bool) -> Ours:
        return Ours(run, name, by.call(case.m, case.k, **more), case.m, case.m)

    contestants = [
        Ours(run, TREE, searcher(run, case, data, found.index), case.m, case.m),
        ours(BUFFERED, buffered),
        ours(f"{TREE}, {AS_THEY_CAME}", walk, sort=False),
        ours(f"{BUFFERED}, {AS_THEY_CAME}", buffered, sort=False),
        Ours(run, EXACT, searcher(run, case, data, index_of(run, data, "exact")), case.m, case.m),
    ]
    timings, _ = clocked(run, case, data, contestants, found.answer)
    write_rows(run, case, found.facts, contestants, timings, {})
    for height in HEIGHTS:
        if case.n >> height >= 1:
            run.guarded(case, BUFFERED, lambda height=height: at_height(run, case, data, found.answer, height))


def at_height(run: Run, case: Case, data: DeviceData, expected: Answer, height: int) -> None:
    """Write rows of both traversals of a tree of this height; ratios are to tonari's walk of the same tree."""
    planned = Planned(run, case, data, height=height)
    facts = {"stage": "search", "proof": PROOF, "recall": 1.0} | planned.columns()
    both = [
        Ours(run, TREE, planned.call(case.m, case.k), case.m, case.m),
        Ours(run, BUFFERED, planned.call(case.m, case.k, traversal="buffered"), case.m, case.m),
    ]
    timings, _ = clocked(run, case, data, both, expected)
    for name, more in ((TREE, {}), (BUFFERED, told(run, planned.rounds(case.m, case.k)))):
        own = {"who": name, "proved": case.m, "ratio": timings[name].median / timings[TREE].median}
        run.write(case, [merged(facts, own, more, speed(case, timings[name]))])


def phases(run: Run, case: Case) -> None:
    """Figures 4 and 3 (b): write a row with the seconds of each phase for each number of queries."""
    data = data_of(run, case)
    found = proved(run, case, data)
    planned = Planned(run, case, data, traversal="buffered")
    proof = {name: found.facts[name] for name in ("proof", "recall", "stage")}
    for share in QUERY_SHARES:
        fewer = case.resized(m=max(1, case.m // share))
        call = planned.call(fewer.m, fewer.k)
        same(as_answer(call(), run.where), found.answer, BUFFERED)
        counted = told(run, planned.rounds(fewer.m, fewer.k))
        facts = merged(proof, planned.columns(), {"who": BUFFERED, "proved": fewer.m}, counted)
        run.write(fewer, [merged(facts, speed(fewer, run.time(call)))])


def told(run: Run, counted: Any) -> dict[str, Any]:
    """Return the counters of the buffered traversal as columns of results."""
    note = f"{counted.rounds} rounds, buffers emptied {counted.emptied} times, {counted.full} with one half full"
    names = ("find_seconds", "process_seconds", "sort_seconds")
    columns = {name: getattr(counted, name) / (run.threads or 1) for name in names}
    columns |= {"tile": counted.compared / max(1, counted.tiles), "walked": counted.walked}
    return {"note": note, "extras": columns}
