"""gieseke2014, section 4.3: figures 2, 3a, 5 and 6 on this machine. n = 10^6 points, k = 10, synthetic magnitudes.

- Figure 2: seconds against the height of the tree.
- Figure 3a: with and without locality. The paper compares full buffers with none; here queries are sorted by their
  first leaf, or searched in the order in which they came. Against the number of queries.
- Figure 5: against k, beside brute force and, on a processor, pykdtree.
- Figure 6: against n, beside the same.

The paper's psf colours (d = 4) are five magnitudes here; its d = 10 is ours. It times 10^7 queries, as we do on CUDA.
What would take longer than a few seconds is timed on the first queries and scaled. Whatever is timed has the bits of
one proved answer, for the height of a tree and the order of the queries change nothing about it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from .exact_cpu import Theirs
from .exact_gpu_data import DeviceData
from .exact_gpu_proof import Answer, as_answer
from .kdtree_search import (
    EXACT,
    PROOF,
    TREE,
    Planned,
    index_of,
    proved,
    running_peers,
    same,
    searcher,
    take_turns,
    timing_of,
)

if TYPE_CHECKING:
    from .kdtree_cases import Case
    from .kdtree_run import TreeRun

KS = (1, 2, 4, 8, 16, 32, 64)
SIZES = (1 << 14, 1 << 15, 1 << 16, 1 << 17, 1 << 18, 1 << 19, 1 << 20)
# A leaf holds at most and at least so many points where heights are tried; on CUDA it is made of blocks of 64.
LARGEST_LEAF = 1 << 14
LEAST_LEAF = {"cpu": 8, "cuda": 48}
QUERY_SHARES = (1000, 300, 100, 30, 10, 3, 1)
# Seconds of a call beyond which it is timed on fewer queries, and rows that tell how long it would take.
LONGEST = 4.0
PILOT_ROWS = {"cpu": 2048, "cuda": 1 << 18}


def heights(run: TreeRun, case: Case) -> None:
    """Figure 2."""
    data = run.data(case)
    expected = proved(run, case, data).answer
    for height in range(case.n.bit_length()):
        if LEAST_LEAF[run.device.kind] <= case.n >> height <= LARGEST_LEAF:
            tree(run, case, data, expected, height=height)


def orders(run: TreeRun, case: Case) -> None:
    """Figure 3a."""
    data = run.data(case)
    expected = proved(run, case, data).answer
    for share in QUERY_SHARES:
        fewer = case.resized(m=max(1, case.m // share))
        part = DeviceData(data.points, data.queries[: fewer.m])
        for sort in (True, False):
            tree(run, fewer, part, expected, sort=sort)


def neighbours(run: TreeRun, case: Case) -> None:
    """Figure 5."""
    data = run.data(case)
    expected = proved(run, case.resized(k=min(max(KS), case.n)), data).answer
    for k in KS:
        if k <= case.n:
            one = case.resized(k=k)
            tree(run, one, data, expected)
            brute(run, one, data, expected)
            trees_of_others(run, one, data)


def sizes(run: TreeRun, case: Case) -> None:
    """Figure 6: other numbers of points, the last of which is the case's."""
    for size in (*(size for size in SIZES if size < case.n), case.n):
        one = case.resized(n=size)
        data = run.data(one)
        expected = proved(run, one, data).answer
        tree(run, one, data, expected)
        brute(run, one, data, expected)
        trees_of_others(run, one, data)


def rows_for(run: TreeRun, case: Case, call_of: Callable[[int], Callable[[], Any]]) -> int:
    """How many queries a call may have."""
    pilot = PILOT_ROWS[run.device.kind]
    if case.m <= 2 * pilot:
        return case.m
    call = call_of(pilot)
    call()
    needed = run.time_once(call) * case.m / pilot
    return case.m if needed <= LONGEST else max(pilot, int(case.m * LONGEST / needed))


def tree(run: TreeRun, case: Case, data: DeviceData, expected: Answer, **choices: Any) -> None:
    """A row about the tree by some plan."""
    planned = Planned(run, case, data, **choices)
    facts = {"who": TREE, "stage": "search", "proof": PROOF, "recall": 1.0} | planned.columns()
    point(run, case, expected, lambda rows: planned.call(rows, case.k), facts)


def brute(run: TreeRun, case: Case, data: DeviceData, expected: Answer) -> None:
    """A row about brute force."""
    index = index_of(run, data, "exact")
    facts = {"who": EXACT, "stage": "search", "proof": PROOF, "recall": 1.0}
    point(run, case, expected, lambda rows: searcher(run, case, data, index, rows), facts)


def point(
    run: TreeRun,
    case: Case,
    expected: Answer,
    call_of: Callable[[int], Callable[[], Any]],
    facts: dict[str, Any],
) -> None:
    """Prove and time one point of a figure, of which ``call_of`` gives a search of the first so many queries."""

    def work() -> None:
        rows = rows_for(run, case, call_of)
        call = call_of(rows)
        same(as_answer(call(), run.where), expected, facts["who"])
        timing = run.time(call)
        share = case.m / rows
        timing = timing._replace(median=timing.median * share, least=timing.least * share, most=timing.most * share)
        sliced = {"rows_timed": rows} if rows < case.m else {}
        run.write(case, [facts | {"proved": rows} | sliced | run.speed(case, timing)])

    run.guarded(case, facts["who"], work)


def trees_of_others(run: TreeRun, case: Case, data: DeviceData) -> None:
    """Rows about the case's peers."""
    with contextlib.ExitStack() as stack:
        for peer in running_peers(stack, run, case, data):
            theirs = Theirs(peer, case, case.m, run.peer_seconds)  # type: ignore[arg-type]
            timing = timing_of(take_turns([theirs], min(3, run.repeats))[peer.name])
            sliced = {"rows_timed": theirs.rows} if theirs.rows < case.m else {}
            run.write(case, [{"who": peer.name, "stage": "search"} | sliced | run.speed(case, timing)])


# --- drawing -----------------------------------------------------------------------------------------------------

# Figure -> what its horizontal axis is, and what that is called.
AXES = {"2": ("height", "height of the tree"), "3a": ("m", "queries"), "5": ("k", "k"), "6": ("n", "points")}


def series_of(figure: str, row: dict[str, Any]) -> str:
    """The curve that a row is a point of."""
    name = str(row["who"])
    if figure == "3a":
        return "sorted by leaf" if row["sort"] == "True" else "as they came"
    return f"{name}, d = {row['d']}" if figure == "2" else name


def curves(figure: str, rows: list[dict[str, Any]]) -> Iterator[tuple[str, float, float]]:
    """(series, x, microseconds per query) of rows as they stand in the results file."""
    axis = AXES[figure][0]
    for row in rows:
        if row["seconds_median"] and row[axis]:
            yield series_of(figure, row), float(row[axis]), 1e6 * float(row["seconds_median"]) / float(row["m"])
