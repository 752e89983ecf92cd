"""A run of a suite: the values that its rows share, its clock, the data that cases share, and the writing of rows."""

from __future__ import annotations

import fnmatch
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from . import machine, rows
from .case import Bar, Case
from .device import Device, Timing, take_turns
from .proof import WrongAnswer
from .proof.neighbors import PROVED_ROWS, Proof

# A call that takes more than LONG seconds is timed only three times, and more than VERY_LONG seconds only once.
LONG, VERY_LONG = 1.0, 20.0
# Number of threads for which the bars on CPUs were set.
BAR_THREADS = 2
NOTE_LENGTH = 300


class Poisoned(RuntimeError):
    """The CUDA context is broken, so nothing more can be measured in this process."""


def say(message: str) -> None:
    """Print progress to stderr."""
    print(message, file=sys.stderr, flush=True)


@dataclass
class Run:
    """A run of a suite: its clock, its options, the data that cases share, and the rows that it writes.

    Attributes
    ----------
    suite : name of the suite or paper
    tonari : module with the public functions
    where : device of torch for data and answers
    libraries : libraries whose versions are in the rows
    path : results file, or None
    scale : factor of points and queries, for a quick run
    repeats : timed calls; long calls are timed fewer times
    peer_seconds : longest call of a peer on all queries; a slower peer gets a part of them
    deadline : value of ``time.perf_counter`` after which nothing new is begun
    who : patterns of the selected contestants
    gpus : number of GPUs
    ceilings : highest rates of the machine, measured when they are first used
    rows : all rows so far
    wrong : number of our measurements that failed their proof or crashed
    kept : data of the present case, and facts about the data, by key
    remembered : data that a case leaves for later cases
    """

    suite: str
    tonari: ModuleType
    device: Device
    where: str
    libraries: tuple[str, ...] = ()
    path: Path | None = None
    scale: float = 1.0
    repeats: int = 7
    peer_seconds: float = 1.0
    deadline: float = float("inf")
    who: tuple[str, ...] = ("*",)
    gpus: int = 0
    ceilings: Any = None
    rows: list[rows.Row] = field(default_factory=list)
    wrong: int = 0
    kept: dict[Any, Any] = field(default_factory=dict)
    remembered: dict[Any, Any] = field(default_factory=dict)
    shared: rows.Row = field(init=False)

    def __post_init__(self) -> None:
        versions = machine.library_versions(self.libraries)
        self.shared = {
            "date": machine.today(),
            "commit": machine.commit(),
            "suite": self.suite,
            "device": self.device.kind,
            "machine": self.device.title(),
            "gpus": 1 if self.cuda else None,
            "isa": self.device.isa(),
            "threads": self.threads,
            "versions": " ".join(f"{name}={number}" for name, number in versions.items()),
            "scale": self.scale,
        }

    @property
    def cuda(self) -> bool:
        """Whether the run is on a GPU."""
        return self.device.kind == "cuda"

    @property
    def threads(self) -> int | None:
        """The number of CPU threads of each contestant; None on a GPU."""
        return self.device.threads

    def describe(self) -> str:
        """Return the machine, versions, commit and date as one line of text, which is printed above the results."""
        facts = self.shared
        cores = f", {facts['threads']} threads, {facts['isa']}" if facts["threads"] else ""
        return f"{facts['machine']}{cores}; {facts['versions']}; commit {facts['commit']}; {facts['date']}"

    def options(self) -> dict[str, Any]:
        """The keyword arguments that every call of tonari in this run gets."""
        return {"progress": False} | ({} if self.cuda else {"threads": self.threads})

    # --- time ---

    def reaches(self, seconds: float) -> bool:
        """Whether work of about this number of seconds would end before the deadline."""
        return time.perf_counter() + seconds <= self.deadline

    def time(self, call: Callable[[], object], *, loops: int = 1) -> Timing:
        """Return the seconds of a warm call, measured over `loops` successive calls without a pause."""

        def repeated() -> None:
            for _ in range(loops):
                call()

        first = self.device.once(repeated)
        if first > VERY_LONG:
            return Timing(first / loops, first / loops, first / loops, 1)
        count = self.repeats if first <= LONG else min(3, self.repeats)
        timing = take_turns(self.device, {"": repeated}, seconds=0.0, least=count, most=count)[""]
        return timing.times(1 / loops)

    def time_once(self, call: Callable[[], object]) -> float:
        """Return the seconds of one call."""
        return self.device.once(call)

    def proof(self, queries: Any, points: Any, k: int, *, graph: bool, count: int = PROVED_ROWS) -> Any:
        """Return the true neighbours of `count` queries, for comparison with answers."""
        return Proof(queries, points, k, self.where, graph=graph, count=count)

    def prove(self, check: Callable[[], int]) -> int:
        """Run a check, which may raise WrongAnswer; return the number of compared rows."""
        return check()

    # --- data that cases share ---

    def keep(self, key: Any, make: Callable[[], Any]) -> Any:
        """Return the data with this key; if they are not stored, make them, and store them in place of earlier data."""
        if key not in self.kept:
            self.kept.clear()
            self.free()
            self.kept[key] = make()
        return self.kept[key]

    def also(self, key: Any, make: Callable[[], Any]) -> Any:
        """Return a fact about the stored data; `make` computes it once, and it is dropped together with the data."""
        if key not in self.kept:
            self.kept[key] = make()
        return self.kept[key]

    def free(self) -> None:
        """Release the device memory that torch has cached, since peers have allocators of their own."""
        if self.where.startswith("cuda"):
            import torch

            torch.cuda.empty_cache()

    # --- contestants and verdicts ---

    def wants(self, name: str) -> bool:
        """Whether the command line selects the contestant with this name."""
        return any(fnmatch.fnmatch(name, pattern) for pattern in self.who)

    def judges(self, bar: Bar, isa: str | None = None) -> bool:
        """Whether to judge a bar: only at full size, on the machine, instruction set and threads that it is for."""
        home = bar.home in self.shared["machine"] and bar.isa in ("", isa or self.shared["isa"])
        return self.scale == 1 and home and self.threads in (None, BAR_THREADS)

    def verdicts(self, bars: Sequence[Bar], measured: dict[str, float]) -> list[dict[str, Any]]:
        """Return columns with a verdict for each bar whose quantity was measured.

        If there is no such bar, return one dictionary without columns, so that callers still write one row.
        """
        found = [bar.verdict(measured[bar.on], judged=self.judges(bar)) for bar in bars if bar.on in measured]
        return found or [{}]

    # --- rows ---

    def write(self, case: Case, found: Sequence[rows.Row]) -> None:
        """Append rows about a case to the results file, and print them."""
        whole = [self.shared | case.columns() | row for row in found]
        if self.path is not None:
            rows.append(self.path, whole)
        self.rows += whole
        for row in whole:
            say(rows.line(row))

    def guarded(self, case: Case, who: str, work: Callable[[], None]) -> None:
        """Run `work`; if it fails, write a row with the error, and let the run continue."""
        try:
            work()
        except Exception as error:
            note = note_of(error)
        else:
            return
        self.wrong += who.startswith("tonari")
        self.write(case, [{"who": who, "note": note}])
        self.free()
        if "CUDA error" in note:
            raise Poisoned(note)


def note_of(error: Exception) -> str:
    """Return the text for the column ``note`` of a row about an error."""
    if isinstance(error, WrongAnswer):
        note = f"WRONG: {error}"
    elif out_of_memory(error):
        return "out of memory"
    else:
        note = f"FAILED: {type(error).__name__}: {error}"
    return " ".join(note.split())[:NOTE_LENGTH]


def out_of_memory(error: Exception) -> bool:
    """Whether an error is Python's or torch's error for lack of memory; torch is not imported for this."""
    return isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError"


def seconds_of(timing: Timing) -> rows.Row:
    """Return a timing as the columns of results for seconds and repeats."""
    return {
        "repeats": timing.repeats,
        "seconds_median": timing.median,
        "seconds_min": timing.least,
        "seconds_max": timing.most,
    }


def run_cases(run: Run, cases: Sequence[Case]) -> None:
    """Run each case for which the GPUs and the time suffice; otherwise write a row with the reason."""
    poisoned = False
    for whole in cases:
        case = whole.scaled(run.scale)
        if poisoned:
            run.write(case, [{"who": "tonari", "note": "not reached: the device is beyond use"}])
        elif run.cuda and case.gpus > run.gpus:
            run.write(case, [{"who": "tonari", "note": f"needs {case.gpus} GPUs, there are {run.gpus}"}])
        elif not run.reaches(whole.cost * run.scale):
            run.write(case, [{"who": "tonari", "note": "not reached"}])
        else:
            began = time.perf_counter()
            try:
                run.guarded(case, "tonari", lambda case=case: case.work(run, case))
            except Poisoned:
                poisoned = True
            say(f"{case.name}: {time.perf_counter() - began:.1f} s in all")
    judged = [row["passed"] for row in run.rows if row.get("passed") is not None]
    print(f"{sum(judged)} of {len(judged)} bars met; {run.wrong} wrong or failed", flush=True)
