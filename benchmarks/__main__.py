"""Benchmarks of tonari, proved before they are timed.

    python -m benchmarks list                             the cases and their bars
    python -m benchmarks run                              all cases, best instruction set
    python -m benchmarks run --case 'graph-*' --case l1   some of them (shell patterns)
    python -m benchmarks run --isa amx --isa avx512       one process per instruction set
    python -m benchmarks run --scale 0.05 --no-csv        a quick look; bars are judged at full size only
    python -m benchmarks peers --case 'graph-*'           the peers alone, without tonari
    python -m benchmarks machine                          processor, versions, measured ceilings
    python -m benchmarks.select --help                    k-selection: bars, grid of methods, the papers' figures
    python -m benchmarks.exact_gpu --list                 exact search on CUDA: cases and bars
    python -m benchmarks.kdtree --list                    the k-d tree, on the CPU and on CUDA: cases and bars
    python -m benchmarks.descent --list                   approximate graphs and merging: cases and bars

Results are printed and appended to ``benchmarks/results/exact_cpu.csv``. The exit status is 1 when an answer failed
its proof; a missed bar is shown and recorded. From a bare copy: ``PYTHONPATH=src:. python -m benchmarks run``.
The peers run with the OpenBLAS kernels that are fastest for them here; ``--blas-core own`` takes OpenBLAS's choice.
Real descriptors come from ``shared/data``, from the ``.bvecs`` file that TONARI_SIFT names, or from photographs.

Sample of real output:

    case              isa     k   seconds    spread  peer   seconds   recall  ratio   bar       GFLOP/s  ceiling ...
    graph-sift-f32    avx512  10  5.82 s     6%      faiss  74.08 s*  1.0000  12.72x  3x  pass  439.7    62% of 713 ...
    search-gauss-k10  avx512  10  949.75 ms  14%     faiss  9.36 s*   1.0000  9.85x   3x  pass  269.5    38% of 713 ...
    * measured on a slice of the queries and scaled
"""

from __future__ import annotations

import argparse
import fnmatch
import importlib
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from . import machine

if TYPE_CHECKING:
    from .exact_cpu import Case, Settings

# NumPy and tonari are imported inside the verbs: processors are pinned and TONARI_ISA is set first.


def build_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    verbs = parser.add_subparsers(dest="verb", required=True)
    verbs.add_parser("list", help="the cases, their peers and bars")
    for verb, text in (("run", "prove, then time"), ("peers", "time the peers alone"), ("machine", "measure ceilings")):
        command = verbs.add_parser(verb, help=text)
        command.add_argument("--threads", type=int, default=2, help="threads for everyone (default 2)")
        if verb == "machine":
            continue
        command.add_argument("--case", action="append", metavar="PATTERN", help="cases to run (default all)")
        command.add_argument("--scale", type=float, default=1.0, help="shrink points and queries by this factor")
        command.add_argument("--repeats", type=int, default=5, help="timed rounds (default 5)")
        command.add_argument(
            "--seconds",
            type=float,
            default=20.0,
            help="longest single run of a peer before it gets a slice (default 20)",
        )
        command.add_argument(
            "--blas-core",
            default="fastest",
            help="OpenBLAS kernels of the peers: fastest (measured, default), own (its choice), or a name: Haswell",
        )
        if verb == "run":
            command.add_argument("--isa", action="append", help="force an instruction set: generic, avx2, avx512, amx")
            command.add_argument("--csv", type=Path, help="results file (default benchmarks/results/exact_cpu.csv)")
            command.add_argument("--no-csv", action="store_true", help="print only")
    return parser


def chosen_cases(patterns: list[str] | None) -> list[Case]:
    """Cases that match any pattern, in their own order; SystemExit when a pattern matches none."""
    from .exact_cpu import CASES

    for pattern in patterns or []:
        if not fnmatch.filter(CASES, pattern):
            raise SystemExit(f"no case matches {pattern!r}; there are: {', '.join(CASES)}")
    return [case for name, case in CASES.items() if any(fnmatch.fnmatch(name, p) for p in patterns or ["*"])]


def settings_of(options: argparse.Namespace) -> Settings:
    """The numbers of the command line, refused when out of range."""
    from .exact_cpu import Settings

    if not 0 < options.scale <= 1 or options.repeats < 1 or options.seconds <= 0:
        raise SystemExit("--scale lies above 0 and up to 1, --repeats is at least 1, --seconds is above 0")
    return Settings(options.threads, options.scale, options.repeats, options.seconds, options.blas_core)


def list_cases() -> int:
    """Print the cases."""
    from . import report
    from .exact_cpu import CASES

    lines = [("case", "metric", "k", "bar is against", "amx", "avx512", "avx2", "also timed")]
    for case in CASES.values():
        bars = [f"{case.bars[level]:.3g}x" for level in ("amx", "avx512", "avx2")]
        lines.append(
            (
                case.name,
                case.metric,
                str(case.k),
                ", ".join(case.against),
                bars[0],
                bars[1],
                bars[2],
                ", ".join(case.beside),
            )
        )
    print(report.aligned(lines))
    return 0


def run_each_isa(isas: list[str], arguments: list[str]) -> int:
    """The same command once per instruction set, each in its own process; the worst exit status."""
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


def run(options: argparse.Namespace, arguments: list[str]) -> int:
    """Prove and time the chosen cases."""
    isas = options.isa or []
    if len(isas) > 1:
        return run_each_isa(isas, arguments)
    if isas:
        os.environ["TONARI_ISA"] = isas[0]
    machine.pin(options.threads)
    tonari = importlib.import_module("tonari")
    for part in ("core._native", "metrics.reference"):
        importlib.import_module(f"tonari.{part}")
    from . import ceilings, exact_cpu, report

    cases, settings = chosen_cases(options.case), settings_of(options)
    print(machine.describe())
    print(ceilings.describe(options.threads))
    rows = []
    wrong = 0
    for case in cases:
        try:
            results = exact_cpu.run_case(tonari, case, settings)
        except exact_cpu.WrongAnswer as error:
            wrong += 1
            print(f"{case.name}: WRONG, not timed: {error}")
            continue
        rows += results
        if not options.no_csv:
            report.append(options.csv or report.RESULTS, results)
    if rows:
        print(report.table(rows))
    return 1 if wrong else 0


def peers_alone(options: argparse.Namespace) -> int:
    """Time the peers of the chosen cases."""
    machine.pin(options.threads)
    from . import exact_cpu, report

    print(machine.describe())
    lines = [("case", "peer", "seconds", "least", "most", "rows searched")]
    for case in chosen_cases(options.case):
        for name, median, least, most, rows in exact_cpu.run_peers(case, settings_of(options)):
            lines.append((case.name, name, f"{median:.4g}", f"{least:.4g}", f"{most:.4g}", str(rows)))
    print(report.aligned(lines))
    return 0


def main(arguments: list[str]) -> int:
    """Run one verb; the exit status."""
    options = build_parser().parse_args(arguments)
    if options.verb == "list":
        return list_cases()
    if options.verb == "run":
        return run(options, arguments)
    if options.verb == "peers":
        return peers_alone(options)
    machine.pin(options.threads)
    from . import ceilings

    print(machine.describe())
    print(ceilings.describe(options.threads))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
