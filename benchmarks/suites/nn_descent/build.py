"""Graphs by NN-Descent, by exact search, by auto and by the peers: verified, timed alternately, and judged.

The time is from raw points to the finished graph, with all steps: checks, packing, start, rounds, and the run's own
measurement of recall. Every contestant is warmed up, then builds one graph, which is verified and whose peak memory is
measured. Then all contestants are timed alternately; a graph that is built again must have the same bits. If a build
takes longer than VERY_LONG, it is not repeated: the time of the verified build counts.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ...harness.case import Bar, Case
from ...harness.device import Timing, take_turns
from ...harness.memory import Peak
from ...harness.peers import graphs as peers
from ...harness.proof.graph import GraphTruth
from ...harness.rows import merged
from ...harness.run import LONG, VERY_LONG, Run, say, seconds_of
from .contestants import (
    AUTO,
    DESCENT,
    EXACT,
    SEED,
    Contestant,
    ExactSlice,
    OurGraph,
    TheirGraph,
    points_of,
    truth_of,
)

INDEX_BYTES = DISTANCE_BYTES = 4
# Bytes of a value in the packed copy of the rows: float16 on CUDA, at most float32 on the CPU.
SCREEN_BYTES = {"cpu": 4, "cuda": 2}
GRAPHS = 3
RECALL_BARS = ("recall@10", "recall@k")
MEMORY = "memory"


class Look(NamedTuple):
    """The seconds of a contestant's first build, and columns of results about the graph."""

    seconds: float
    facts: dict[str, Any]


def first_look(run: Run, case: Case, one: Contestant, truth: GraphTruth) -> Look:
    """Warm a contestant up, let it build the graph once, and verify the graph."""
    warmed = one.warm()
    run.free()
    peak = Peak(run.where)
    seconds = run.time_once(one.call) / one.share
    taken = one.peak if isinstance(one, TheirGraph) else peak.bytes()
    points = points_of(run, case)
    extras = {"input_bytes": points.numel() * points.element_size(), "target": one.settings.get("recall")}
    facts = {"peak_bytes": taken, "parameters": one.settings, "extras": extras}
    return Look(seconds, merged(warmed, facts, one.judged(truth)))


def clocked(
    run: Run, case: Case, contestants: Sequence[Contestant], truth: GraphTruth
) -> dict[str, tuple[Timing, dict[str, Any]]]:
    """Verify the contestants' graphs, and time those that are right.

    For each other graph, write a row with the error.
    """
    seen: dict[str, Look] = {}
    for one in contestants:

        def look(one: Contestant = one) -> None:
            seen[one.name] = first_look(run, case, one, truth)

        say(f"{case.name}: {one.name}")
        run.guarded(case, one.name, look)
    timings = {name: Timing(look.seconds, look.seconds, look.seconds, 1) for name, look in seen.items()}
    again = [one for one in contestants if one.name in seen and seen[one.name].seconds * one.share <= VERY_LONG]
    count = run.repeats if all(seen[one.name].seconds * one.share <= LONG for one in again) else min(3, run.repeats)
    round_seconds = sum(seen[one.name].seconds * one.share for one in again)
    while count > 1 and not run.reaches(count * round_seconds):
        count -= 1
    calls: dict[str, Callable[[], object]] = {one.name: one.call for one in again}
    turns = take_turns(run.device, calls, seconds=0.0, least=count, most=count, settle=not run.cuda)
    found = {}
    for one in contestants:
        if one.name not in seen:
            continue

        def whole(one: Contestant = one) -> None:
            if one.name in turns:
                if not isinstance(one, TheirGraph):
                    one.judged(truth)
                timing = turns[one.name]
                timings[one.name] = timing.times(1 / one.share)
            found[one.name] = timings[one.name], seen[one.name].facts

        run.guarded(case, one.name, whole)
    return found


def build(run: Run, case: Case) -> None:
    """Build a case's graph by every contestant, time the builds, and write the rows."""
    truth = truth_of(run, case)
    with contextlib.ExitStack() as stack:
        given = {"recall": case.target, "seed": SEED, **case.parameters}
        contestants: list[Contestant] = [OurGraph(run, case, DESCENT, method="nn-descent", **given)]
        if case.auto:
            contestants.append(OurGraph(run, case, AUTO, method="auto", recall=case.target))
        if run.wants(EXACT):
            sliced = 0 < case.exact_rows < case.n
            exact = ExactSlice(run, case, case.exact_rows) if sliced else OurGraph(run, case, EXACT, method="exact")
            contestants.append(exact)
        contestants += rivals(stack, run, case)
        contestants = [one for one in contestants if run.wants(one.name)]
        write(run, case, clocked(run, case, contestants, truth))


def rivals(stack: contextlib.ExitStack, run: Run, case: Case) -> list[TheirGraph]:
    """Return a contestant for each usable peer and setting; for each unusable peer, write a row with the reason."""
    found: list[TheirGraph] = []
    for name in case.peers:
        if not run.wants(name):
            continue
        missing = peers.missing(name)
        if missing:
            run.write(case, [{"who": name, "note": missing}])
            continue
        process = None
        if name == peers.PYNNDESCENT:
            process = stack.enter_context(peers.Pynndescent(points_of(run, case).numpy(), run.threads or 1))
        found.append(TheirGraph(run, case, name, process, {}))
        found += [found[-1].with_settings(settings, named=True) for settings in map(dict, case.peer_settings)]
    return found


def write(run: Run, case: Case, found: dict[str, tuple[Timing, dict[str, Any]]], whose: str = DESCENT) -> None:
    """Write a row of NN-Descent for each bar, then a row for each other contestant."""
    mine = found.get(whose)
    rows = []
    if mine is not None:
        timing, facts = mine
        measured = {name: other[0].median / timing.median for name, other in found.items()}
        measured |= {"seconds": timing.median, "recall@10": facts["extras"]["recall_10"], "recall@k": facts["recall"]}
        if facts["peak_bytes"] is not None:
            measured[MEMORY] = (facts["extras"]["input_bytes"] + facts["peak_bytes"]) / allowed_bytes(run, case)
        if AUTO in found:
            best = min(found[name][0].median for name in (DESCENT, EXACT) if name in found)
            measured["auto over the best"] = found[AUTO][0].median / best
        whole = {"who": whose} | facts | seconds_of(timing)
        rows = [whole | verdict for verdict in verdicts(run, case.bars, measured)]
    for name, (timing, facts) in found.items():
        if name != whose:
            ratio = {} if mine is None else {"ratio": timing.median / mine[0].median}
            rows.append({"who": name} | facts | seconds_of(timing) | ratio)
    run.write(case, rows)


def allowed_bytes(run: Run, case: Case) -> float:
    """Return the maximum allowed peak in bytes: the input, its packed copy, and three graphs."""
    points = points_of(run, case)
    screen = points.numel() * SCREEN_BYTES[run.device.kind]
    graph = case.n * case.k * (INDEX_BYTES + DISTANCE_BYTES)
    return float(points.numel() * points.element_size() + screen + GRAPHS * graph)


def verdicts(run: Run, bars: Sequence[Bar], measured: dict[str, float]) -> list[dict[str, Any]]:
    """Return a verdict for each bar; a graph that misses its recall fails all bars on time."""
    found = run.verdicts(bars, measured)
    if any(row.get("bar_on") in RECALL_BARS and row["passed"] is False for row in found):
        for row in found:
            if row["passed"] and row["bar_on"] not in (*RECALL_BARS, MEMORY):
                row |= {"passed": False, "note": "its recall is missed"}
    return found


def workload(run: Run, case: Case) -> Callable[[], Any]:
    """Return a function that builds a case's graph by NN-Descent, for a comparison of two versions."""
    graph = OurGraph(run, case, DESCENT, method="nn-descent", recall=case.target, seed=SEED, **case.parameters)
    return graph.make
