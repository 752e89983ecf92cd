"""Benchmarks of the exact engine on GPUs, proved before they are timed.

    python -m benchmarks.exact_gpu --list                        the cases, what they are held to, what they take
    python -m benchmarks.exact_gpu                               all of them, cheapest first
    python -m benchmarks.exact_gpu --cases 'search-*,graph-sift' some of them (shell patterns)
    python -m benchmarks.exact_gpu --warm --budget 540           compile in parallel first; end within nine minutes
    python -m benchmarks.exact_gpu --warm-only                   compile, and leave measuring to a later run
    python -m benchmarks.exact_gpu --scale 0.02 --no-csv         a quick look; bars are judged at full size only

Rows are printed and appended to benchmarks/results/exact_gpu.csv as soon as they exist. A lent machine writes elsewhere
(--csv $OUT/exact_gpu.csv), and the lines behind the header are then appended to that file. With --budget a case that
would not end in time is noted as "not reached", for another run to take up. The exit status is 1 when an answer failed
its proof or something crashed; a missed bar is shown and recorded. Of the proof: 256 rows of every search, single query
and graph have the bits of tonari.metrics.reference, all rows are in order, and the answer that was timed is the proved
one.

From a bare copy: PYTHONPATH=src:. and TONARI_COMMIT name what is measured. Peers come from shared/tools/peer_kit.sh;
those that are absent have a row that says so. Real descriptors are computed from the photographs inside scikit-image
and scikit-learn where no file of a million is at hand (a minute on 16 cores; kept in benchmarks/.cache).

Sample of what a case prints (case, who, queries x points, time and spread, rate, proof, bar):

    search-k10       tonari              10000 x 1000000   d=128  k=10       7.1 ms ±2%     361 TFLOP/s float16=10000
                     | seconds 0.0071, bar 0.0075: pass
"""

from __future__ import annotations

import argparse
import importlib
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from . import case_command, machine

WHERE = "cuda:0"
# Part of the budget that a warm-up may take, and of the device's memory.
WARM_SHARE = 0.5
MEMORY_SHARE = 0.8


def build_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.exact_gpu", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--list", action="store_true", help="show the cases, measure nothing")
    parser.add_argument("--cases", help="names or shell patterns, with commas (default all)")
    parser.add_argument("--warm", action="store_true", help="compile in parallel processes first")
    parser.add_argument("--warm-only", action="store_true", help="compile in parallel processes, measure nothing")
    parser.add_argument("--jobs", type=int, help="processes of the warm-up (default one a core, less two)")
    parser.add_argument("--budget", type=float, default=float("inf"), help="seconds that the whole may take")
    parser.add_argument("--repeats", type=int, default=7, help="timed calls (default 7; fewer of long ones)")
    parser.add_argument("--scale", type=float, default=1.0, help="shrink points and queries by this factor")
    parser.add_argument(
        "--peer-seconds", type=float, default=1.0, help="longest call of a peer before it gets a slice (default 1)"
    )
    parser.add_argument("--csv", type=Path, help="results file (default benchmarks/results/exact_gpu.csv)")
    parser.add_argument("--no-csv", action="store_true", help="print only")
    parser.add_argument("--warm-case", help=argparse.SUPPRESS)  # what --warm runs, one process a case
    return parser


def checked(options: argparse.Namespace) -> None:
    """Refuse numbers out of range."""
    if not 0 < options.scale <= 1:
        raise SystemExit("--scale lies above 0 and up to 1")
    for name in ("repeats", "budget", "peer_seconds", "jobs"):
        value = getattr(options, name)
        if value is not None and value <= 0:
            raise SystemExit(f"--{name.replace('_', '-')} is above 0, got {value}")


def list_cases() -> int:
    """Print the cases."""
    from .exact_gpu_cases import CASES
    from .report import aligned

    lines = [("case", "n", "m", "d", "k", "data", "GPUs", "about s", "bars")]
    for case in CASES.values():
        bars = ", ".join(f"{bar.on} {'<=' if bar.most else '>='} {bar.bound:g}" for bar in case.bars)
        sizes = [str(value) for value in (case.n, case.m, case.d, case.k)]
        lines.append((case.name, *sizes, case.data, str(case.gpus), f"{case.cost:.0f}", bars))
    print(aligned(lines))
    return 0


def import_tonari() -> Any:
    """tonari with its reference."""
    importlib.import_module("tonari.metrics.reference")
    return importlib.import_module("tonari")


def warm_one(options: argparse.Namespace) -> int:
    """Compile what one case needs: the whole of a process that a warm-up starts."""
    from .exact_gpu_cases import CASES
    from .exact_gpu_warm import NoCeilings, WarmRun
    from .select_device import Cuda

    case = CASES[options.warm_case]
    run = WarmRun(import_tonari(), Cuda(), WHERE, NoCeilings(), scale=options.scale)  # type: ignore[arg-type]
    case.work(run, case.scaled(options.scale * case.warm_scale))
    return 1 if run.wrong else 0


def warm_all(options: argparse.Namespace, cases: Sequence[Any], deadline: float) -> None:
    """Compile what some cases need."""
    import torch

    from .exact_gpu_run import say
    from .exact_gpu_warm import warm

    jobs = options.jobs or max(1, machine.cores_allowed() - 2)
    gigabytes = MEMORY_SHARE * torch.cuda.get_device_properties(0).total_memory / 1e9

    def command_of(case: Any) -> list[str]:
        return [sys.executable, "-m", "benchmarks.exact_gpu", "--warm-case", case.name, "--scale", str(options.scale)]

    started = time.perf_counter()
    cases = [case for case in cases if case.gpus <= torch.cuda.device_count()]
    failed = warm(cases, command_of, jobs=jobs, gigabytes=gigabytes, deadline=deadline)
    say(f"warm-up: {len(cases)} cases in {time.perf_counter() - started:.0f} s; failed: {', '.join(failed) or 'none'}")


def measure(options: argparse.Namespace) -> int:
    """Prove and time the chosen cases; the exit status."""
    import torch

    from .exact_gpu_cases import chosen
    from .exact_gpu_ceilings import Ceilings
    from .exact_gpu_proof import self_check
    from .exact_gpu_rows import RESULTS
    from .exact_gpu_run import Run
    from .select_device import Cuda

    started = time.perf_counter()
    cases = chosen(options.cases.split(",") if options.cases else None)
    if not torch.cuda.is_available():
        raise SystemExit("these benchmarks need a CUDA device")
    if options.warm_only:
        warm_all(options, cases, started + options.budget)
        return 0
    if options.warm:
        warm_all(options, cases, started + WARM_SHARE * options.budget)
    tonari, device = import_tonari(), Cuda()
    run = Run(
        tonari,
        device,
        WHERE,
        Ceilings(device, WHERE),
        None if options.no_csv else options.csv or RESULTS,
        options.scale,
        options.repeats,
        options.peer_seconds,
        started + options.budget,
    )
    print(run.describe(), flush=True)
    self_check(tonari.metrics.reference, WHERE)
    run_cases(run, cases, torch.cuda.device_count())
    return 1 if run.wrong else 0


def run_cases(run: Any, cases: Sequence[Any], gpus: int) -> None:
    """Run the cases that the machine and the time have room for; a row says of each other why not."""

    def lacks(case: Any) -> str:
        return f"needs {case.gpus} GPUs, there are {gpus}" if case.gpus > gpus else ""

    case_command.run_cases(run, cases, lacks)


def main(arguments: list[str]) -> int:
    """Run what was asked for; the exit status."""
    options = build_parser().parse_args(arguments)
    checked(options)
    if options.list:
        return list_cases()
    return warm_one(options) if options.warm_case else measure(options)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
