"""gieseke2014, section 4.3: figures 2, 3a, 5 and 6 on this machine. n = 10^6 points, k = 10, synthetic magnitudes.

Each figure has rows of two traversals of one tree: tonari's walk, and the paper's buffered traversal.

- Figure 2: seconds against the height of the tree.
- Figure 3a: seconds against the number of queries, with and without locality. The paper compares full buffers with
  none; here queries are sorted by their first leaf, or searched in their original order.
- Figure 5: seconds against k, compared with brute force and, on a processor, with pykdtree.
- Figure 6: seconds against n, compared with the same.
- Table 2, for d = 10: 10^7 queries of 2 x 10^6 points, compared with brute force.

In place of the paper's four psf colours (d = 4), five magnitudes are used here; d = 10 is the same. The paper times
10^7 queries, as we do on CUDA. Calls that would take longer than a few seconds are timed on the first queries and
scaled. All timed answers have the bits of one verified answer, because neither the height of a tree nor the order of
the queries changes an answer.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from typing import Any

from ...harness.case import Case
from ...harness.contest import Theirs, race
from ...harness.datasets.hard import DeviceData
from ...harness.proof.neighbors import PROOF, Answer, as_answer, same
from ...harness.rows import merged
from ...harness.run import Run
from ...suites.kdtree.search import (
    EXACT,
    TREE,
    Planned,
    data_of,
    index_of,
    proved,
    running_peers,
    searcher,
    speed,
)

BUFFERED = f"{TREE}, buffered"
KS = (1, 2, 4, 8, 16, 32, 64)
SIZES = (1 << 14, 1 << 15, 1 << 16, 1 << 17, 1 << 18, 1 << 19, 1 << 20)
# Maximum and minimum number of points in a leaf, for trees of several heights; on CUDA a leaf consists of blocks of 64.
LARGEST_LEAF = 1 << 14
LEAST_LEAF = {"cpu": 8, "cuda": 48}
QUERY_SHARES = (1000, 300, 100, 30, 10, 3, 1)
# A call that would take more than LONGEST seconds is timed on fewer queries, as estimated from a call with PILOT_ROWS
# queries.
LONGEST = 4.0
PILOT_ROWS = {"cpu": 2048, "cuda": 1 << 18}


def heights(run: Run, case: Case) -> None:
    """Figure 2: write rows for trees of several heights."""
    data = data_of(run, case)
    expected = proved(run, case, data).answer
    for height in range(case.n.bit_length()):
        if LEAST_LEAF[run.device.kind] <= case.n >> height <= LARGEST_LEAF:
            tree(run, case, data, expected, height=height)


def orders(run: Run, case: Case) -> None:
    """Figure 3a: write rows for several numbers of queries, sorted by first leaf and in their original order."""
    data = data_of(run, case)
    expected = proved(run, case, data).answer
    for share in QUERY_SHARES:
        fewer = case.resized(m=max(1, case.m // share))
        part = DeviceData(data.points, data.queries[: fewer.m])
        for sort in (True, False):
            tree(run, fewer, part, expected, sort=sort)


def neighbours(run: Run, case: Case) -> None:
    """Figure 5: write rows for several k."""
    data = data_of(run, case)
    expected = proved(run, case.resized(k=min(max(KS), case.n)), data).answer
    for k in KS:
        if k <= case.n:
            one = case.resized(k=k)
            tree(run, one, data, expected)
            brute(run, one, data, expected)
            trees_of_others(run, one, data)


def sizes(run: Run, case: Case) -> None:
    """Figure 6: write rows for several numbers of points, up to that of the case."""
    for size in (*(size for size in SIZES if size < case.n), case.n):
        one = case.resized(n=size)
        data = data_of(run, one)
        expected = proved(run, one, data).answer
        tree(run, one, data, expected)
        brute(run, one, data, expected)
        trees_of_others(run, one, data)


def table(run: Run, case: Case) -> None:
    """Table 2: write rows of the trees and of brute force."""
    data = data_of(run, case)
    expected = proved(run, case, data).answer
    tree(run, case, data, expected)
    brute(run, case, data, expected)


def rows_for(run: Run, case: Case, call_of: Callable[[int], Callable[[], Any]]) -> int:
    """Return the number of queries, at most those of the case, that a call can search in about LONGEST seconds."""
    pilot = PILOT_ROWS[run.device.kind]
    if case.m <= 2 * pilot:
        return case.m
    call = call_of(pilot)
    call()
    needed = run.time_once(call) * case.m / pilot
    return case.m if needed <= LONGEST else max(pilot, int(case.m * LONGEST / needed))


def tree(run: Run, case: Case, data: DeviceData, expected: Answer, **choices: Any) -> None:
    """Write a row for each traversal of a tree.

    ``choices`` override the plan, which otherwise chooses the tree's height.
    """
    for who, traversal in ((TREE, "walk"), (BUFFERED, "buffered")):
        planned = Planned(run, case, data, traversal=traversal, **choices)
        facts = {"who": who, "stage": "search", "proof": PROOF, "recall": 1.0} | planned.columns()
        point(run, case, expected, functools.partial(planned.call, k=case.k), facts)


def brute(run: Run, case: Case, data: DeviceData, expected: Answer) -> None:
    """Write a row for brute force."""
    index = index_of(run, data, "exact")
    facts = {"who": EXACT, "stage": "search", "proof": PROOF, "recall": 1.0}
    point(run, case, expected, lambda rows: searcher(run, case, data, index, rows), facts)


def point(
    run: Run,
    case: Case,
    expected: Answer,
    call_of: Callable[[int], Callable[[], Any]],
    facts: dict[str, Any],
) -> None:
    """Verify and time one point of a figure; ``call_of(count)`` returns a search of the first ``count`` queries."""

    def work() -> None:
        rows = rows_for(run, case, call_of)
        call = call_of(rows)
        same(as_answer(call(), run.where), expected, facts["who"])
        timing = run.time(call).times(case.m / rows)
        sliced = {"rows_timed": rows} if rows < case.m else {}
        run.write(case, [merged(facts, {"proved": rows}, sliced, speed(case, timing))])

    run.guarded(case, facts["who"], work)


def trees_of_others(run: Run, case: Case, data: DeviceData) -> None:
    """Write rows for the case's peers."""
    with contextlib.ExitStack() as stack:
        for peer in running_peers(stack, run, case, data):
            theirs = Theirs(peer, case, case.m, run.peer_seconds)
            timing = race([theirs], min(3, run.repeats))[peer.name]
            run.write(case, [{"who": peer.name, "stage": "search"} | theirs.sliced() | speed(case, timing)])
