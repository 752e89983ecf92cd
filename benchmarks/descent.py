"""Benchmarks of approximate graphs (NN-Descent, merging), proved before they are timed.

    python -m benchmarks.descent --list                          the cases of the CPU, and what they are held to
    python -m benchmarks.descent                                 all of them but the curves, on two threads
    python -m benchmarks.descent --cases 'curve-*'               recall against time, ours and the peers'
    python -m benchmarks.descent --cases sift-1m --who pynndescent    some contestants only
    python -m benchmarks.descent --device cuda --budget 540      on a GPU; end within nine minutes
    python -m benchmarks.descent --scale 0.02 --no-csv           a quick look; bars are judged at full size only
    python -m benchmarks.descent --plots                         draw docs/images/descent-*, print tables

Rows are printed and appended to benchmarks/results/descent.csv as soon as they exist. A lent machine writes elsewhere
(--csv $OUT/descent.csv), and the lines behind the header are then appended to that file. With --budget a case that
would not end in time is noted as "not reached", for another run to take up. The exit status is 1 when a graph failed
its proof or something crashed; a missed bar is shown and recorded.

From a bare copy: PYTHONPATH=src:. and TONARI_COMMIT name what is measured. Real descriptors are read from the file that
TONARI_SIFT names, else computed once from photographs (a minute on 16 cores) and kept in benchmarks/.cache. pynndescent
is a package of its own (pip install pynndescent); cuVS comes from the kit that benchmarks/exact_gpu_peers.py tells of.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from . import kdtree, machine


def build_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.descent", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--list", action="store_true", help="show the cases, measure nothing")
    parser.add_argument("--plots", action="store_true", help="draw figures and print tables of the results file")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--cases", help="names or shell patterns, with commas (default all but curve-*)")
    parser.add_argument("--who", default="*", help="contestants, shell patterns with commas (default all)")
    parser.add_argument("--threads", type=int, default=2, help="threads for everyone on the CPU (default 2)")
    parser.add_argument("--budget", type=float, default=float("inf"), help="seconds that the whole may take")
    parser.add_argument("--repeats", type=int, default=5, help="timed rounds (default 5; fewer of long ones)")
    parser.add_argument("--scale", type=float, default=1.0, help="shrink the points by this factor")
    parser.add_argument("--csv", type=Path, help="results file (default benchmarks/results/descent.csv)")
    parser.add_argument("--no-csv", action="store_true", help="print only")
    return parser


def checked(options: argparse.Namespace) -> None:
    """Refuse numbers out of range."""
    if not 0 < options.scale <= 1:
        raise SystemExit("--scale lies above 0 and up to 1")
    for name in ("repeats", "budget", "threads"):
        value = getattr(options, name)
        if value <= 0:
            raise SystemExit(f"--{name} is above 0, got {value}")


def list_cases(device: str, patterns: Sequence[str] | None) -> int:
    """Print the cases."""
    from .descent_cases import chosen
    from .report import aligned

    lines: list[tuple[str, ...]] = [("case", "n", "d", "k", "data", "recall", "about s", "bars")]
    for case in chosen(device, patterns or ["*"]):
        bars = ", ".join(f"{bar.on} {'<=' if bar.most else '>='} {bar.bound:.3g}" for bar in case.bars)
        sizes = [str(value) for value in (case.n, case.d, case.k)]
        lines.append((case.name, *sizes, case.data, str(case.target), f"{case.cost:.0f}", bars))
    print(aligned(lines))
    return 0


def plots(path: Path) -> int:
    """Draw and print what there is."""
    from .descent_plots import draw_all, tables

    for drawn in draw_all(path):
        print(drawn)
    print(tables(path))
    return 0


def measure(options: argparse.Namespace, patterns: Sequence[str] | None) -> int:
    """Prove and time the chosen cases; the exit status."""
    started = time.perf_counter()
    cuda = options.device == "cuda"
    if not cuda:
        machine.pin(options.threads)
    tonari = importlib.import_module("tonari")
    reference = importlib.import_module("tonari.reference")
    from .descent_cases import chosen
    from .descent_rows import RESULTS
    from .descent_run import DescentRun
    from .exact_gpu_proof import self_check
    from .select_device import open_device

    if cuda:
        import torch

        if not torch.cuda.is_available():
            raise SystemExit("--device cuda needs a CUDA device")
    cases = chosen(options.device, patterns)
    where = "cuda:0" if cuda else "cpu"
    run = DescentRun(
        tonari,
        open_device(options.device, options.threads),
        where,
        ceilings=None,  # type: ignore[arg-type]
        path=None if options.no_csv else options.csv or RESULTS,
        scale=options.scale,
        repeats=options.repeats,
        deadline=started + options.budget,
        threads=None if cuda else options.threads,
        who=tuple(options.who.split(",")),
    )
    print(run.describe(), flush=True)
    self_check(reference, where)
    kdtree.run_cases(run, cases)
    return 1 if run.wrong else 0


def main(arguments: list[str]) -> int:
    """Run what was asked for; the exit status."""
    options = build_parser().parse_args(arguments)
    checked(options)
    patterns = options.cases.split(",") if options.cases else None
    if options.list:
        return list_cases(options.device, patterns)
    if options.plots:
        from .descent_rows import RESULTS

        return plots(options.csv or RESULTS)
    return measure(options, patterns)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
