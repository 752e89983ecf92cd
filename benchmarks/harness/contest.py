"""Contestants that are timed alternately: a call of tonari on the device, or a peer in a separate process."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from .case import Case
from .device import SETTLE_SECONDS, Timing, timing_of
from .peers import cpu as peers
from .run import Run

# FAISS processes queries in blocks of 4096, so a peer that gets only some of the queries gets a multiple of this
# number.
SLICE_ROWS = 4096
# Numbers of queries in the two trial calls that estimate a peer's time. A slow peer runs only the small trial; the
# large one is for peers that are fast only if they get many queries.
PILOT_ROWS = (256, 2048)


class Timed(NamedTuple):
    """The seconds of the whole workload, or of one call if queries are searched one by one; and the answer."""

    seconds: float
    distances: Any
    indices: Any


class Contestant(Protocol):
    """One of several competitors whose calls are timed alternately."""

    name: str

    def run(self) -> Timed:
        """Run the workload once; return its seconds and its answer."""


class Ours:
    """A call of tonari for the first ``rows`` queries of a case; its seconds are scaled to all ``all_rows`` queries."""

    def __init__(self, run: Run, name: str, call: Callable[[], Any], rows: int, all_rows: int) -> None:
        self.name, self.rows, self.all_rows = name, rows, all_rows
        self._run, self._call = run, call

    def run(self) -> Timed:
        """Run the call once; return its scaled seconds and its answer."""
        last: list[Any] = [None]

        def call() -> None:
            last[0] = self._call()

        seconds = self._run.device.once(call)
        return Timed(seconds * self.all_rows / self.rows, last[0].distances, last[0].indices)


class Theirs:
    """A peer's process for one case; trial calls determine the number of queries for which the peer is timed."""

    def __init__(self, peer: peers.RunningPeer, case: Case, rows: int, seconds: float) -> None:
        self.peer, self.case, self.name = peer, case, peer.name
        self.all_rows = self.rows = rows
        if not case.single:
            # the first call also imports modules and starts threads
            self._ask(min(rows, PILOT_ROWS[0]))
            estimate = 0.0
            for pilot in PILOT_ROWS:
                pilot = min(rows, pilot)
                if estimate * pilot / rows > seconds:
                    break
                estimate = self._ask(pilot).search_seconds * rows / pilot
            if estimate > seconds:
                wanted = rows * seconds / estimate
                blocks = int(wanted // SLICE_ROWS) * SLICE_ROWS
                self.rows = blocks or max(PILOT_ROWS[0], int(wanted))

    def _ask(self, rows: int) -> peers.Reply:
        # if a peer builds a graph by a search, each list includes the point itself, so one more neighbour is requested
        k = self.case.k + self.case.graph
        return self.peer.search(peers.Request(0, rows, k, self.case.single, self.case.prepared))

    def run(self) -> Timed:
        """Search the first ``rows`` queries.

        Return the seconds scaled to all queries, plus once the time to build the index.
        """
        reply = self._ask(self.rows)
        if self.case.single:
            seconds = reply.search_seconds / self.rows
        else:
            seconds = reply.search_seconds * self.all_rows / self.rows
        if not self.case.prepared:
            seconds += reply.prepare_seconds
        return Timed(seconds, reply.distances, reply.indices)

    def sliced(self) -> dict[str, int]:
        """Return the column ``rows_timed`` if not all queries were timed; otherwise no column."""
        return {"rows_timed": self.rows} if self.rows < self.all_rows else {}


class Build:
    """The construction of an index, without a search."""

    def __init__(self, name: str, seconds: Callable[[], float]) -> None:
        self.name, self._seconds = name, seconds

    def run(self) -> Timed:
        """Build the index once; return the seconds, and no answer."""
        return Timed(self._seconds(), np.empty(0), np.empty(0))


def race(contestants: Sequence[Contestant], repeats: int) -> dict[str, Timing]:
    """Call every contestant once to warm up, then once in each of ``repeats`` rounds; return their seconds."""
    seconds: dict[str, list[float]] = {contestant.name: [] for contestant in contestants}
    for turn in range(repeats + 1):
        for contestant in contestants:
            time.sleep(SETTLE_SECONDS)
            elapsed = contestant.run().seconds
            if turn:
                seconds[contestant.name].append(elapsed)
    return {name: timing_of(found) for name, found in seconds.items()}


def start_peers(
    stack: contextlib.ExitStack,
    run: Run,
    case: Case,
    points: Any,
    queries: Any,
    core_of: Callable[[str], str | None] = lambda name: None,
) -> list[peers.RunningPeer]:
    """Start the selected peers of the case, each in its own process; for each other peer, write a row with the reason.

    `core_of` has the names of the OpenBLAS kernels for each peer; None is OpenBLAS's own choice.
    """
    found = []
    for name in case.peers:
        if name not in peers.PEERS or not run.wants(name):
            continue
        missing = peers.PEERS[name].missing()
        if missing:
            run.write(case, [{"who": name, "note": missing}])
            continue
        peer = peers.RunningPeer(name, points, queries, case.metric, run.threads or 1, core_of(name))
        found.append(stack.enter_context(peer))
    return found
