"""gieseke2014, abstract and figure 4: the GPU compared with the processor of its host, in one run.

tonari's walk on all cores stands for the paper's k-d tree on all cores. The buffered traversal on one core is the same
algorithm as in the paper. Rows of the processor have its name and its number of threads; a row of the GPU has its
speed-ups over both. Calls that would take longer than a few seconds are timed on the first queries and
scaled.
"""

from __future__ import annotations

import dataclasses
import os
from typing import Any, NamedTuple

from ...harness.case import Case
from ...harness.datasets.hard import DeviceData
from ...harness.device import Cpu, Timing
from ...harness.proof.neighbors import PROOF, Answer, as_answer, same
from ...harness.rows import merged
from ...harness.run import Run
from ...suites.kdtree.search import TREE, Planned, data_of, proved, speed
from .figures import BUFFERED, rows_for

ALL_CORES, ONE_CORE = f"{TREE}, all cores", f"{BUFFERED}, one core"
OVER = {ALL_CORES: "over_all_cores", ONE_CORE: "over_one_core"}


class Place(NamedTuple):
    """A contestant: its name, its run and data on its device, and its traversal of the tree."""

    who: str
    run: Run
    data: DeviceData
    traversal: str


def compare(run: Run, case: Case) -> None:
    """Write a row for all cores of the host, a row for one core, and a row for each traversal on the GPU."""
    data = data_of(run, case)
    expected = proved(run, case, data).answer
    on_host = DeviceData(data.points.cpu(), data.queries.cpu())
    seconds: dict[str, float] = {}
    for who, threads, traversal in ((ALL_CORES, len(os.sched_getaffinity(0)), "walk"), (ONE_CORE, 1, "buffered")):
        host = dataclasses.replace(run, device=Cpu(threads), where="cpu")
        place = Place(who, host, on_host, traversal)
        run.guarded(case, who, lambda place=place: seconds.update({place.who: timed(case, place, expected, {})}))
    for who, traversal in ((TREE, "walk"), (BUFFERED, "buffered")):
        place = Place(who, run, data, traversal)
        run.guarded(case, who, lambda place=place: timed(case, place, expected, seconds))


def timed(case: Case, place: Place, expected: Answer, others: dict[str, float]) -> float:
    """Verify and time a contestant, write its row, and return its seconds for all queries."""
    run = place.run
    planned = Planned(run, case, place.data, traversal=place.traversal)
    rows = rows_for(run, case, lambda count: planned.call(count, case.k))
    call = planned.call(rows, case.k)
    same(as_answer(call(), expected.indices.device), expected, place.who)
    timing: Timing = run.time(call).times(case.m / rows)
    facts: dict[str, Any] = {"who": place.who, "stage": "search", "proof": PROOF, "recall": 1.0, "proved": rows}
    facts |= {"rows_timed": rows} if rows < case.m else {}
    ahead = {"extras": {OVER[who]: theirs / timing.median for who, theirs in others.items()}}
    run.write(case, [merged(facts, planned.columns(), ahead, speed(case, timing))])
    return timing.median
