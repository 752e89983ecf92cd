"""Benchmarks of the k-d tree, proved before they are timed.

    python -m benchmarks.kdtree --list                           the cases of the CPU, and what they are held to
    python -m benchmarks.kdtree                                  all of them but the grid of auto, on two threads
    python -m benchmarks.kdtree --cases 'sift-*,build-d10'       some of them (shell patterns)
    python -m benchmarks.kdtree --cases 'fig*'                   gieseke2014's figures 2, 3a, 5 and 6 on this machine
    python -m benchmarks.kdtree --cases rounds-d10               the paper's rounds and buffers beside ours
    python -m benchmarks.kdtree --cases 'auto-*'                 what auto picks, over a grid of n, m and d
    python -m benchmarks.kdtree --device cuda --budget 540       on a GPU; end within nine minutes
    python -m benchmarks.kdtree --scale 0.02 --no-csv            a quick look; bars are judged at full size only
    python -m benchmarks.kdtree --plots                          draw docs/images/kdtree-*, print tables

Rows are printed and appended to benchmarks/results/kdtree.csv as soon as they exist. A lent machine writes elsewhere
(--csv $OUT/kdtree.csv), and the lines behind the header are then appended to that file. With --budget a case that would
not end in time is noted as "not reached", for another run to take up. The exit status is 1 when an answer failed its
proof or something crashed; a missed bar is shown and recorded.

From a bare copy: PYTHONPATH=src:. and TONARI_COMMIT name what is measured. Real descriptors are read from the file that
TONARI_SIFT names, else computed once from photographs (a minute on 16 cores) and kept in benchmarks/.cache.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from . import case_command

# Seconds that a peer may take for one call before it is given fewer queries.
PEER_SECONDS = 5.0


def build_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = case_command.parser_of("kdtree", __doc__, rare="auto-*", scaled="points and queries")
    parser.add_argument(
        "--peer-seconds",
        type=float,
        default=PEER_SECONDS,
        help=f"longest call of a peer before it gets a slice (default {PEER_SECONDS:g})",
    )
    return parser


def list_cases(device: str, patterns: Sequence[str] | None) -> int:
    """Print the cases."""
    from .kdtree_cases import chosen
    from .report import aligned

    lines = [("case", "n", "m", "d", "k", "data", "about s", "bars")]
    for case in chosen(device, patterns or ["*"]):
        sizes = [str(value) for value in (case.n, case.m, case.d, case.k)]
        lines.append((case.name, *sizes, case.data, f"{case.cost:.0f}", case_command.bars_of(case)))
    print(aligned(lines))
    return 0


def main(arguments: list[str]) -> int:
    """Run what was asked for; the exit status."""
    options = case_command.checked(build_parser().parse_args(arguments), "peer_seconds")
    patterns = options.cases.split(",") if options.cases else None
    if options.list:
        return list_cases(options.device, patterns)
    from .kdtree_rows import RESULTS

    if options.plots:
        from . import kdtree_plots

        return case_command.draw(kdtree_plots, options.csv or RESULTS)
    case_command.pin(options)
    from .kdtree_cases import chosen
    from .kdtree_run import TreeRun

    cases = chosen(options.device, patterns)
    return case_command.measure(options, TreeRun, cases, RESULTS, peer_seconds=options.peer_seconds)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
