"""One run of a suite: what all its rows share, clocks, what cases hand on, rows as they come."""

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

# Seconds of a call beyond which it is timed three times, and once.
LONG, VERY_LONG = 1.0, 20.0
# The bars of processors were set for so many threads.
BAR_THREADS = 2
NOTE_LENGTH = 300


class Poisoned(RuntimeError):
    """The CUDA context is beyond use: nothing more can be measured in this process."""


def say(message: str) -> None:
    """Progress, on stderr."""
    print(message, file=sys.stderr, flush=True)


@dataclass
class Run:
    """Where results go and what all of them share.

    Attributes
    ----------
    suite : name of the suite or paper
    tonari : module with the verbs
    where : device of torch that data and answers are on
    libraries : whose versions rows tell
    path : results file, or None for none
    scale : factor of points and queries, for a quick look
    repeats : timed calls; fewer of long ones
    peer_seconds : longest call of a peer before it gets a slice of the queries
    deadline : value of ``time.perf_counter`` after which nothing new is begun
    who : patterns of the contestants that are wanted
    gpus : GPUs that there are
    ceilings : what the machine can do at most; measured when asked for
    rows : all rows so far
    wrong : measurements of ours that failed their proof or crashed
    kept : data of the case, and what is known of them
    remembered : what cases leave for later ones
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
        """Threads of everyone, on a processor."""
        return self.device.threads

    def describe(self) -> str:
        """One line for the head of a table."""
        facts = self.shared
        cores = f", {facts['threads']} threads, {facts['isa']}" if facts["threads"] else ""
        return f"{facts['machine']}{cores}; {facts['versions']}; commit {facts['commit']}; {facts['date']}"

    def options(self) -> dict[str, Any]:
        """Arguments that every call of ours has."""
        return {"progress": False} | ({} if self.cuda else {"threads": self.threads})

    # --- time ---

    def reaches(self, seconds: float) -> bool:
        """Whether something that takes about so long would still end in time."""
        return time.perf_counter() + seconds <= self.deadline

    def time(self, call: Callable[[], object], *, loops: int = 1) -> Timing:
        """Time a call that ran before; with `loops` so many back to back, the seconds of one."""

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
        """Seconds of one call."""
        return self.device.once(call)

    def proof(self, queries: Any, points: Any, k: int, *, graph: bool, count: int = PROVED_ROWS) -> Any:
        """The truth about some rows of tensors."""
        return Proof(queries, points, k, self.where, graph=graph, count=count)

    def prove(self, check: Callable[[], int]) -> int:
        """Rows that a check compared; it raises WrongAnswer."""
        return check()

    # --- what is kept ---

    def keep(self, key: Any, make: Callable[[], Any]) -> Any:
        """The data that `make` gives, kept until others are made: cases that follow one another share theirs."""
        if key not in self.kept:
            self.kept.clear()
            self.free()
            self.kept[key] = make()
        return self.kept[key]

    def also(self, key: Any, make: Callable[[], Any]) -> Any:
        """What `make` finds out about the data that are kept, kept beside them."""
        if key not in self.kept:
            self.kept[key] = make()
        return self.kept[key]

    def free(self) -> None:
        """Give cached memory back: peers have allocators of their own."""
        if self.where.startswith("cuda"):
            import torch

            torch.cuda.empty_cache()

    # --- contestants and verdicts ---

    def wants(self, name: str) -> bool:
        """Whether a contestant takes part."""
        return any(fnmatch.fnmatch(name, pattern) for pattern in self.who)

    def judges(self, bar: Bar, isa: str | None = None) -> bool:
        """Whether a bar holds here: at full size, on the machine, instruction set and threads that it was set for."""
        home = bar.home in self.shared["machine"] and bar.isa in ("", isa or self.shared["isa"])
        return self.scale == 1 and home and self.threads in (None, BAR_THREADS)

    def verdicts(self, bars: Sequence[Bar], measured: dict[str, float]) -> list[dict[str, Any]]:
        """Columns of the verdict on each bar that there is a measurement for; one row without where there is none."""
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
        """Run `work`; where it fails, a row that says how: one fault must not lose the rest of a run."""
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
    """What a row says of a fault."""
    if isinstance(error, WrongAnswer):
        note = f"WRONG: {error}"
    elif out_of_memory(error):
        return "out of memory"
    else:
        note = f"FAILED: {type(error).__name__}: {error}"
    return " ".join(note.split())[:NOTE_LENGTH]


def out_of_memory(error: Exception) -> bool:
    """Whether this is Python's or torch's way to say so; torch is not imported for it."""
    return isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError"


def seconds_of(timing: Timing) -> rows.Row:
    """Columns about seconds alone."""
    return {
        "repeats": timing.repeats,
        "seconds_median": timing.median,
        "seconds_min": timing.least,
        "seconds_max": timing.most,
    }


def run_cases(run: Run, cases: Sequence[Case]) -> None:
    """Run the cases that the machine and the time have room for; a row says of each other why not."""
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
