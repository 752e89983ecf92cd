"""What the commands that run cases share: options, listing, drawing, a run on the machine, and the cases one by one."""

from __future__ import annotations

import argparse
import importlib
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from . import machine


def parser_of(name: str, about: str | None, *, rare: str, scaled: str) -> argparse.ArgumentParser:
    """The command line; `rare` are cases that run only by name, `scaled` is what --scale makes fewer."""
    parser = argparse.ArgumentParser(
        prog=f"python -m benchmarks.{name}", description=about, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--list", action="store_true", help="show the cases, measure nothing")
    parser.add_argument("--plots", action="store_true", help="draw figures and print tables of the results file")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--cases", help=f"names or shell patterns, with commas (default all but {rare})")
    parser.add_argument("--threads", type=int, default=2, help="threads for everyone on the CPU (default 2)")
    parser.add_argument("--budget", type=float, default=float("inf"), help="seconds that the whole may take")
    parser.add_argument("--repeats", type=int, default=5, help="timed rounds (default 5; fewer of long ones)")
    parser.add_argument("--scale", type=float, default=1.0, help=f"shrink {scaled} by this factor")
    parser.add_argument("--csv", type=Path, help=f"results file (default benchmarks/results/{name}.csv)")
    parser.add_argument("--no-csv", action="store_true", help="print only")
    return parser


def checked(options: argparse.Namespace, *positive: str) -> argparse.Namespace:
    """Refuse numbers out of range; the budget counts from here."""
    if not 0 < options.scale <= 1:
        raise SystemExit("--scale lies above 0 and up to 1")
    for name in ("repeats", "budget", "threads", *positive):
        value = getattr(options, name)
        if value <= 0:
            raise SystemExit(f"--{name.replace('_', '-')} is above 0, got {value}")
    options.deadline = time.perf_counter() + options.budget
    return options


def pin(options: argparse.Namespace) -> None:
    """Fix the threads of the libraries before they are imported; where a GPU works the processors are all theirs."""
    if options.device == "cpu":
        machine.pin(options.threads)


def bars_of(case: Any) -> str:
    """What a case is held to, as text."""
    return ", ".join(f"{bar.on} {'<=' if bar.most else '>='} {bar.bound:.3g}" for bar in case.bars)


def draw(plots: ModuleType, path: Path) -> int:
    """Draw and print what there is."""
    for drawn in plots.draw_all(path):
        print(drawn)
    print(plots.tables(path))
    return 0


def measure(options: argparse.Namespace, kind: Any, cases: Sequence[Any], results: Path, **more: Any) -> int:
    """Prove and time cases in a run of some kind; the exit status."""
    from .exact_gpu_proof import self_check
    from .select_device import open_device

    cuda = options.device == "cuda"
    if cuda:
        import torch

        if not torch.cuda.is_available():
            raise SystemExit("--device cuda needs a CUDA device")
    where = "cuda:0" if cuda else "cpu"
    run = kind(
        importlib.import_module("tonari"),
        open_device(options.device, options.threads),
        where,
        ceilings=None,
        path=None if options.no_csv else options.csv or results,
        scale=options.scale,
        repeats=options.repeats,
        deadline=options.deadline,
        threads=None if cuda else options.threads,
        **more,
    )
    print(run.describe(), flush=True)
    self_check(importlib.import_module("tonari.metrics.reference"), where)
    run_cases(run, cases)
    return 1 if run.wrong else 0


def run_cases(run: Any, cases: Sequence[Any], lacks: Callable[[Any], str] = lambda case: "") -> None:
    """Run the cases that there is time for, and all that they need; a row says of each other why not.

    `lacks` says what a case needs that is not there, or nothing.
    """
    from .exact_gpu_run import Poisoned, say

    poisoned = False
    for whole in cases:
        case = whole.scaled(run.scale)
        if poisoned:
            run.write(case, [{"who": "tonari", "note": "not reached: the device is beyond use"}])
        elif lacking := lacks(case):
            run.write(case, [{"who": "tonari", "note": lacking}])
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
