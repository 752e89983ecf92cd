"""Compile the kernels of all cases before anything is timed, in many processes at once.

On a new machine Triton compiles for minutes, one kernel after another; its cache on disk is shared. A warm-up runs each
case once in a separate process, without a proof and without timing: it makes the same calls as the measurement, so the
same variants are compiled. Processes run side by side while cores and device memory suffice. The first process that
needs real descriptors makes them, while the others wait.
"""

from __future__ import annotations

import argparse
import importlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import IO, Any

from ...harness import machine
from ...harness.case import Case, Suite
from ...harness.device import Timing, open_device
from ...harness.peers.cuda import PEERS
from ...harness.run import Run, say

POLL_SECONDS = 0.1
WHERE = "cuda:0"
# Maximum share of a run's time budget that a warm-up may take.
WARM_SHARE = 0.5
# Maximum share of the device's memory that a warm-up may take.
MEMORY_SHARE = 0.8


class NoProof:
    """A proof that accepts every answer, for warm-ups."""

    def check(self, found: Any, k: int) -> int:
        return 0

    def recall(self, indices: Any, k: int) -> tuple[float, int]:
        return 0.0, 0


class NoCeilings:
    """Ceilings that are not measured, for warm-ups."""

    def gemm(self) -> float:
        return 1.0

    def gemm_at(self, d: int) -> float:
        return 1.0

    def copy(self) -> float:
        return 1.0

    def pcie(self) -> float:
        return 1.0


class WarmRun(Run):
    """A run that makes the calls of a case, but verifies, times and writes nothing."""

    def proof(self, *tensors: Any, **options: Any) -> Any:
        return NoProof()

    def prove(self, check: Callable[[], int]) -> int:
        return 0

    def time(self, call: Callable[[], object], *, loops: int = 1) -> Timing:
        call()
        return Timing(1.0, 1.0, 1.0, 1)

    def wants(self, name: str) -> bool:
        return name in PEERS and PEERS[name].compiles

    def write(self, case: Case, rows: Sequence[dict[str, Any]]) -> None:
        for row in rows:
            if row.get("note", "").startswith(("WRONG", "FAILED")):
                say(f"{case.name} {row['who']}: {row['note']}")


@dataclass
class Child:
    """A process that warms up one case."""

    case: Case
    process: subprocess.Popen[bytes]
    log: IO[bytes]

    def last_words(self) -> str:
        """Return the last lines of the process's output."""
        self.log.seek(0)
        lines = self.log.read().decode(errors="replace").strip().splitlines()
        return " | ".join(lines[-3:])


def warm(
    cases: Sequence[Case],
    command_of: Callable[[Case], list[str]],
    *,
    jobs: int,
    gigabytes: float,
    deadline: float,
) -> list[str]:
    """Warm up every case in its own process, many at the same time; return the names of the cases that failed.

    Parameters
    ----------
    command_of : function that returns the command line of a process that warms up a case
    jobs : largest number of processes at once
    gigabytes : device memory for all processes together; a case that needs more runs alone
    deadline : value of ``time.perf_counter`` at which processes that still run are ended
    """
    waiting, running, failed = list(cases), list[Child](), list[str]()
    started = time.perf_counter()
    while waiting or running:
        for child in [child for child in running if child.process.poll() is not None]:
            running.remove(child)
            if child.process.returncode:
                failed.append(child.case.name)
                say(f"warm-up of {child.case.name} failed: {child.last_words()}")
            else:
                say(f"warm: {child.case.name} after {time.perf_counter() - started:.0f} s {child.last_words()}")
            child.log.close()
        if time.perf_counter() > deadline:
            failed += [case.name for case in waiting]
            waiting = []
            for child in running:
                say(f"warm-up of {child.case.name} ended: time is up")
                child.process.kill()
                child.process.wait()
            continue
        for case in list(waiting):
            if fits(case, [child.case for child in running], jobs, gigabytes):
                waiting.remove(case)
                log = tempfile.TemporaryFile()  # noqa: SIM115, closed with its process
                running.append(Child(case, subprocess.Popen(command_of(case), stdout=log, stderr=log), log))
        time.sleep(POLL_SECONDS)
    return failed


def fits(case: Case, running: Sequence[Case], jobs: int, gigabytes: float) -> bool:
    """Whether a case may start: a process and memory are free, and no other process is making the descriptors."""
    if not running:
        return True
    together = sum(other.gigabytes for other in running) + case.gigabytes
    alone = case.data == "sift" and any(other.data == "sift" for other in running)
    return len(running) < jobs and together <= gigabytes and not alone


def warm_one(suite: Suite, name: str, scale: float) -> int:
    """Compile the kernels of one case; each process of a warm-up runs this function."""
    (case,) = (case for case in suite.cases if case.name == name)
    tonari = importlib.import_module("tonari")
    run = WarmRun(suite.name, tonari, open_device("cuda", 0), WHERE, ceilings=NoCeilings(), scale=scale)
    case.work(run, case.scaled(scale * case.warm_scale))
    return 1 if run.wrong else 0


def warm_all(suite: Suite, options: argparse.Namespace, cases: Sequence[Case]) -> None:
    """Compile the kernels of some cases before the deadline; in a run that also measures, within WARM_SHARE of it."""
    import torch

    gigabytes = MEMORY_SHARE * torch.cuda.get_device_properties(0).total_memory / 1e9
    started = time.perf_counter()
    share = 1.0 if options.warm_only else WARM_SHARE
    cases = [case for case in cases if case.gpus <= torch.cuda.device_count()]

    def command_of(case: Case) -> list[str]:
        return [sys.executable, "-m", "benchmarks", "warm-case", suite.name, case.name, str(options.scale)]

    jobs = max(1, machine.cores_allowed() - 2)
    deadline = started + share * (options.deadline - started)
    failed = warm(cases, command_of, jobs=jobs, gigabytes=gigabytes, deadline=deadline)
    say(f"warm-up: {len(cases)} cases in {time.perf_counter() - started:.0f} s; failed: {', '.join(failed) or 'none'}")
