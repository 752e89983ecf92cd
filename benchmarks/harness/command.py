"""The command-line options that all suites share, and the construction of a run from them."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from . import machine
from .case import Case, Suite
from .rows import aligned


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that all measuring commands share to the parser of a command."""
    parser.add_argument("--device", choices=("cpu", "cuda"), help="where (default cpu, if there are cases for it)")
    parser.add_argument("--case", action="append", metavar="PATTERN", help="cases to run, repeatable (default all)")
    parser.add_argument("--scale", type=float, default=1.0, help="shrink points and queries by this factor")
    parser.add_argument("--repeats", type=int, help="timed rounds (default by suite; fewer of long ones)")
    parser.add_argument("--threads", type=int, default=2, help="threads for everyone on the CPU (default 2)")
    parser.add_argument("--isa", action="append", help="force an instruction set, repeatable: generic avx2 avx512 amx")
    parser.add_argument("--csv", type=Path, help="results file (default benchmarks/results/<suite>.csv)")
    parser.add_argument("--no-csv", action="store_true", help="print only")


def add_run_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `run`."""
    parser.add_argument("--budget", type=float, default=float("inf"), help="seconds that the whole may take")
    parser.add_argument("--who", action="append", metavar="PATTERN", help="peers and other contestants (default all)")
    parser.add_argument("--peer-seconds", type=float, help="longest call of a peer before it gets a slice")
    parser.add_argument("--warm", action="store_true", help="exact_cuda: compile in parallel processes first")
    parser.add_argument("--warm-only", action="store_true", help="exact_cuda: compile, measure nothing")


def checked(options: argparse.Namespace, suite: Suite) -> argparse.Namespace:
    """Fill in the suite's defaults, and refuse numbers out of range; the time budget starts to run now."""
    if not 0 < options.scale <= 1:
        raise SystemExit(f"--scale is {options.scale}, expected above 0 and up to 1")
    options.device = options.device or ("cpu" if "cpu" in suite.devices else "cuda")
    if options.repeats is None:
        options.repeats = suite.repeats
    if getattr(options, "peer_seconds", None) is None:
        options.peer_seconds = suite.peer_seconds
    for name in ("repeats", "budget", "threads", "peer_seconds"):
        value = getattr(options, name, 1)
        if value <= 0:
            raise SystemExit(f"--{name.replace('_', '-')} is {value}, expected above 0")
    options.deadline = time.perf_counter() + getattr(options, "budget", float("inf"))
    return options


def one_process_each(isas: list[str], arguments: list[str]) -> int:
    """Run the command once for each instruction set, each in its own process; return the worst exit status."""
    kept = []
    skip = False
    for argument in arguments:
        if skip or argument.startswith("--isa="):
            skip = False
        elif argument == "--isa":
            skip = True
        else:
            kept.append(argument)
    command = [sys.executable, "-m", "benchmarks", *kept]
    return max(subprocess.run([*command, "--isa", isa], check=False).returncode for isa in isas)


def settle(options: argparse.Namespace) -> None:
    """Set the instruction set and the processors of this process before any library starts its threads.

    If a GPU does the work, the process keeps all processors.
    """
    if options.isa:
        os.environ["TONARI_ISA"] = options.isa[0]
    if options.device == "cpu":
        machine.pin(options.threads)


def open_run(suite: Suite, options: argparse.Namespace) -> Any:
    """Import tonari, and return a run of a suite with the options of the command line."""
    from .cuda_ceilings import CudaCeilings
    from .device import open_device
    from .run import Run

    cuda = options.device == "cuda"
    gpus = 0
    if cuda:
        import torch

        gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
        if not gpus:
            raise SystemExit("--device cuda needs a CUDA device")
    elif suite.torch:
        import torch

        torch.set_num_threads(options.threads)
    import tonari

    device, where = open_device(options.device, options.threads), "cuda:0" if cuda else "cpu"
    return Run(
        suite=suite.name,
        tonari=tonari,
        device=device,
        where=where,
        ceilings=CudaCeilings(device, where) if cuda else None,
        libraries=suite.libraries,
        path=None if options.no_csv else options.csv or suite.path,
        scale=options.scale,
        repeats=options.repeats,
        peer_seconds=options.peer_seconds,
        deadline=options.deadline,
        who=tuple(getattr(options, "who", None) or ("*",)),
        gpus=gpus,
    )


def listing(suite: Suite, device: str | None, patterns: list[str] | None) -> str:
    """Return the cases of a suite and their bars, as text."""
    lines = [("case", "device", "m", "n", "d", "k", "data", "about s", "bars")]
    cases = [
        case
        for where in suite.devices
        if device in (None, where)
        for case in (suite.cases if patterns is None else suite.chosen(where, patterns))
        if case.device == where
    ]
    return aligned([*lines, *(_line(case) for case in cases)])


def _line(case: Case) -> tuple[str, ...]:
    sizes = (str(value) if value else "" for value in (case.m, case.n, case.d, case.k))
    bars = ", ".join(map(str, case.bars))
    if case.against and case.bars:
        bars += f" of {' and '.join(case.against)}"
    rare = " (by name only)" if case.rare else ""
    return (case.name, case.device, *sizes, case.data, f"{case.cost:.0f}", bars + rare)
