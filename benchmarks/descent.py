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
import sys
from collections.abc import Sequence

from . import case_command


def build_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = case_command.parser_of("descent", __doc__, rare="curve-*", scaled="the points")
    parser.add_argument("--who", default="*", help="contestants, shell patterns with commas (default all)")
    return parser


def list_cases(device: str, patterns: Sequence[str] | None) -> int:
    """Print the cases."""
    from .descent_cases import chosen
    from .report import aligned

    lines: list[tuple[str, ...]] = [("case", "n", "d", "k", "data", "recall", "about s", "bars")]
    for case in chosen(device, patterns or ["*"]):
        sizes = [str(value) for value in (case.n, case.d, case.k)]
        bars = case_command.bars_of(case)
        lines.append((case.name, *sizes, case.data, str(case.target), f"{case.cost:.0f}", bars))
    print(aligned(lines))
    return 0


def main(arguments: list[str]) -> int:
    """Run what was asked for; the exit status."""
    options = case_command.checked(build_parser().parse_args(arguments))
    patterns = options.cases.split(",") if options.cases else None
    if options.list:
        return list_cases(options.device, patterns)
    from .descent_rows import RESULTS

    if options.plots:
        from . import descent_plots

        return case_command.draw(descent_plots, options.csv or RESULTS)
    case_command.pin(options)
    from .descent_cases import chosen
    from .descent_run import DescentRun

    cases = chosen(options.device, patterns)
    return case_command.measure(options, DescentRun, cases, RESULTS, who=tuple(options.who.split(",")))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
