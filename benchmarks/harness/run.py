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

# Seconds above which a call is timed only three times, and above which it is timed only once.
LONG, VERY_LONG = 1.0, 20.0
# The bars on CPUs were set for this number of threads.
BAR_THREADS = 2
NOTE_LENGTH = 300


class Poisoned(RuntimeError):
    """The CUDA context is unusable: nothing more can be measured in this process."""


def say(message: str) -> None:
    """Print progress to stderr."""
    print(message, file=sys.stderr, flush=True)


@dataclass
class Run:
    """The destination of results, and their common values.

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
    kept : data of the present case, and facts about these data
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
        """The threads of each contestant, on a processor."""
        return self.device.threads

    def describe(self) -> str:
        """Return one line for the head of a table."""
        facts = self.shared
        cores = f", {facts['threads']} threads, {facts['isa']}" if facts["threads"] else ""
        return f"{facts['machine']}{cores}; {facts['versions']}; commit {facts['commit']}; {facts['date']}"

    def options(self) -> dict[str, Any]:
        """The arguments of all our calls."""
        return {"progress": False} | ({} if self.cuda else {"threads": self.threads})

    # --- time ---

    def reaches(self, seconds: float) -> bool:
        """Whether something that takes about this long would end in time."""
        return time.perf_counter() + seconds <= self.deadline

    def time(self, call: Callable[[], object], *, loops: int = 1) -> Timing:
        """Return the seconds of a warm call; with `loops`, the mean over this many calls without a pause."""

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
        """Return the true answers of some rows of tensors."""
        return Proof(queries, points, k, self.where, graph=graph, count=count)

    def prove(self, check: Callable[[], int]) -> int:
        """Run a check, which may raise WrongAnswer; return the number of compared rows."""
        return check()

    # --- what is kept ---

    def keep(self, key: Any, make: Callable[[], Any]) -> Any:
        """Return the data that `make` makes, which are stored for successive cases until other data replace them."""
        if key not in self.kept:
            self.kept.clear()
            self.free()
            self.kept[key] = make()
        return self.kept[key]

    def also(self, key: Any, make: Callable[[], Any]) -> Any:
        """Return facts about the stored data, which `make` computes once and which are stored with the data."""
        if key not in self.kept:
            self.kept[key] = make()
        return self.kept[key]

    def free(self) -> None:
        """Release the device memory that torch has cached, since peers have their own allocators."""
        if self.where.startswith("cuda"):
            import torch

            torch.cuda.empty_cache()

    # --- contestants and verdicts ---

    def wants(self, name: str) -> bool:
        """Whether the command line selects a contestant."""
        return any(fnmatch.fnmatch(name, pattern) for pattern in self.who)

    def judges(self, bar: Bar, isa: str | None = None) -> bool:
        """Whether a bar holds here: at full size, on the machine, instruction set and threads that it was set for."""
        home = bar.home in self.shared["machine"] and bar.isa in ("", isa or self.shared["isa"])
        return self.scale == 1 and home and self.threads in (None, BAR_THREADS)

    def verdicts(self, bars: Sequence[Bar], measured: dict[str, float]) -> list[dict[str, Any]]:
        """Return the columns of the verdict for each bar with a measurement; if there is none, one row without a
        verdict."""
        found = [bar.verdict(measured[bar.on], judged=self.judges(bar)) for bar in bars if bar.on in measured]
        return found or [{}]

    # --- rows ---

    def write(self, case: Case, found: Sequence[rows.Row]) -> None:
        """Append rows about a case to the results, and show them."""
        whole = [self.shared | case.columns() | row for row in found]
        if self.path is not None:
            rows.append(self.path, whole)
        self.rows += whole
        for row in whole:
            say(rows.line(row))

    def guarded(self, case: Case, who: str, work: Callable[[], None]) -> None:
        """Run `work`; if it fails, write a row with the error, so that the run continues."""
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
    """Return the note of a row about an error."""
    if isinstance(error, WrongAnswer):
        note = f"WRONG: {error}"
    elif out_of_memory(error):
        return "out of memory"
    else:
        note = f"FAILED: {type(error).__name__}: {error}"
    return " ".join(note.split())[:NOTE_LENGTH]


def out_of_memory(error: Exception) -> bool:
    """Whether an error is Python's or torch's error for too little memory; does not import torch."""
    return isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError"


def seconds_of(timing: Timing) -> rows.Row:
    """Return the columns with seconds."""
    return {
        "repeats": timing.repeats,
        "seconds_median": timing.median,
        "seconds_min": timing.least,
        "seconds_max": timing.most,
    }


def run_cases(run: Run, cases: Sequence[Case]) -> None:
    """Run the cases for which machine and time suffice; for each other case, write a row with the reason."""
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
