"""Benchmarks of k-selection, proved before they are timed: every answer against a stable sort.

    python -m benchmarks.select --bars                         the speed that select_k is held to, against torch.topk
    python -m benchmarks.select --grid                         every method and option over a grid, and auto beside them
    python -m benchmarks.select --topk                         shapes of every kind, and torch.topk beside each
    python -m benchmarks.select --learn                        auto_table.json from the grid in the results file
    python -m benchmarks.select --paper tang2015               its figures, from this machine
    python -m benchmarks.select --paper tang2015 --figure 6    one of them
    python -m benchmarks.select --plot-only                    all figures again, from the results file
    python -m benchmarks.select --bars --rows 64 --n 4096 --no-csv     a quick look; bars are judged at full size only

--device cuda where there is one, else cpu. Results are printed and appended to benchmarks/results/select.csv as they
come; figures go to docs/images. A lent machine writes elsewhere (--csv $OUT/select.csv), and the lines behind the
header are then appended to that file. With --budget a run ends in time: what was not reached is noted as that, and
another run takes it up with --figure, --dtype or --n. The exit status is 1 when an answer failed its proof or a method
crashed; a missed bar is shown and recorded. From a bare copy: PYTHONPATH=src:. and TONARI_COMMIT name what is measured.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import machine

if TYPE_CHECKING:
    from .select_run import Run
    from .select_sweep import Paper

# NumPy, torch and tonari are imported when a run begins: processors are pinned first.

PAPERS = ("tang2015", "matsumoto2015", "komarov2014")
CAPS = {"cuda": 2.0, "cpu": 20.0}


def build_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.select", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument("--bars", action="store_true", help="time select_k against its bars, peers and the machine")
    mode.add_argument("--grid", action="store_true", help="time every named method over rows, n, k and dtype")
    mode.add_argument("--topk", action="store_true", help="time select_k against torch.topk over rows, n and k")
    mode.add_argument("--paper", choices=PAPERS, help="measure and draw a paper's figures")
    parser.add_argument("--learn", action="store_true", help="write auto's table from the grid (--grid measures first)")
    parser.add_argument("--plot-only", action="store_true", help="draw from the results file, measure nothing")
    parser.add_argument("--device", choices=("cpu", "cuda"), help="where (default cuda if there is one)")
    parser.add_argument("--threads", type=int, default=2, help="CPU threads for everyone (default 2)")
    parser.add_argument("--rows", type=int, help="at most so many rows in any case")
    parser.add_argument("--n", type=int, help="at most so many values in any row")
    parser.add_argument("--dtype", action="append", help="of the grid; repeatable (default all)")
    parser.add_argument("--method", action="append", help="of the grid; repeatable (default all)")
    parser.add_argument("--figure", action="append", help="of the paper: 5, 'table I'; repeatable (default all)")
    parser.add_argument("--cap", type=float, help="seconds of one call, longer are left out (default cuda 2, cpu 20)")
    parser.add_argument("--budget", type=float, default=float("inf"), help="measure nothing new after so many seconds")
    parser.add_argument("--csv", type=Path, help="results file (default benchmarks/results/select.csv)")
    parser.add_argument("--no-csv", action="store_true", help="print only")
    return parser


def checked(options: argparse.Namespace) -> None:
    """Refuse what does not go together; SystemExit says why."""
    if not (options.bars or options.grid or options.topk or options.paper or options.learn or options.plot_only):
        raise SystemExit("one of --bars, --grid, --topk, --paper, --learn, --plot-only is needed")
    if options.plot_only and (options.bars or options.grid or options.topk or options.learn):
        raise SystemExit("--plot-only goes alone or with --paper")
    if options.learn and (options.bars or options.topk or options.paper):
        raise SystemExit("--learn goes alone or with --grid")
    if options.no_csv and (options.learn or options.plot_only):
        raise SystemExit("--learn and --plot-only read the results file: they do not go with --no-csv")
    if options.figure and not options.paper:
        raise SystemExit("--figure goes with --paper")
    for name in ("dtype", "method"):
        if getattr(options, name) and not options.grid:
            raise SystemExit(f"--{name} goes with --grid")
    for name in ("threads", "rows", "n", "cap", "budget"):
        value = getattr(options, name)
        if value is not None and value <= 0:
            raise SystemExit(f"--{name} is above 0, got {value}")


def paper_of(name: str) -> Paper:
    """One of PAPERS."""
    paper: Paper = importlib.import_module(f"benchmarks.select_{name}").PAPER
    return paper


def figures_of(paper: Paper, wanted: Sequence[str] | None) -> tuple[str, ...]:
    """The wanted figures in the paper's order; SystemExit when it has no such figure."""
    for figure in wanted or ():
        if figure not in paper.figures:
            raise SystemExit(f"{paper.name} has the figures {', '.join(paper.figures)}, not {figure!r}")
    return tuple(figure for figure in paper.figures if not wanted or figure in wanted)


def open_run(options: argparse.Namespace) -> Run:
    """The device and the library, after this process was kept to its processors."""
    kind = options.device
    if kind is None:
        import torch

        kind = "cuda" if torch.cuda.is_available() else "cpu"
    if kind == "cpu":
        machine.pin(options.threads)
    from .select_device import open_device
    from .select_run import Run

    run = Run(
        importlib.import_module("tonari"),
        open_device(kind, options.threads),
        None if options.no_csv else results_path(options),
        options.rows,
        options.n,
        options.cap or CAPS[kind],
        time.perf_counter() + options.budget,
    )
    print(run.describe())
    return run


def results_path(options: argparse.Namespace) -> Path:
    """Where results are written to and read from."""
    from .select_run import RESULTS

    path: Path = options.csv or RESULTS
    return path


def draw(path: Path, papers: Sequence[Paper], figures: Sequence[str] | None = None) -> None:
    """Draw the papers' figures, and print their tables, for every device in a results file."""
    from . import select_plots, select_sweep

    rows = select_sweep.read(path)
    for paper in papers:
        for figure in figures_of(paper, figures):
            for device in ("cpu", "cuda"):
                found = select_sweep.newest(rows, paper.name, figure, device)
                if not found:
                    continue
                facts = found[0]
                threads = f", {facts['threads']} threads" if facts["threads"] else ""
                where = f"{facts['machine']}{threads}, {facts['date'][:10]}"
                if figure in paper.tables:
                    print(f"{paper.name}, {figure}: {where}\n{paper.tables[figure](found)}")
                    continue
                heading = f"{paper.name}, figure {figure}\n{where}"
                target = select_plots.IMAGES / f"select-{paper.name}-fig{figure}-{device}.svg"
                if select_plots.draw(target, paper.panels(figure, found), heading):
                    print(target)


def run_paper(options: argparse.Namespace) -> int:
    """Measure and draw a paper's figures."""
    paper = paper_of(options.paper)
    figures = figures_of(paper, options.figure)
    from .select_sweep import sweep

    run = open_run(options)
    rows = sweep(run, paper, figures)
    for row in rows:
        print(line_of(row))
    if run.path is not None and importlib.util.find_spec("matplotlib") is not None:
        draw(run.path, [paper], figures)
    elif run.path is not None:
        print("matplotlib is not installed here: --plot-only draws elsewhere")
    return 1 if run.wrong else 0


def line_of(row: dict[str, Any]) -> str:
    """A paper's row as text."""
    what = f"{row['figure']:8} {row['series']:32} {row['rows']:6} x {row['n']:<8} k={row['k']:<5} {row['data']:8}"
    if row.get("note") and "seconds_median" not in row:
        return f"{what} {row['note']}"
    if "seconds_median" not in row:
        return f"{what} {row['counters'][:80]}"
    return f"{what} {row['seconds_median'] * 1e3:10.4g} ms {row['gbps']:8.4g} GB/s"


def run_bars(options: argparse.Namespace) -> int:
    """Prove, time and judge select_k."""
    from . import select_bars

    run = open_run(options)
    print(select_bars.table(select_bars.run_bars(run)))
    return 1 if run.wrong else 0


def run_grid(options: argparse.Namespace) -> int:
    """Measure the grid."""
    from . import select_grid

    for dtype in options.dtype or ():
        if dtype not in select_grid.DTYPES:
            raise SystemExit(f"the grid has the dtypes {', '.join(select_grid.DTYPES)}, not {dtype!r}")
    for method in options.method or ():
        known = {name for name, _ in select_grid.variants("cpu")}
        if method not in known:
            raise SystemExit(f"the methods are {', '.join(sorted(known))}, not {method!r}")
    run = open_run(options)
    rows = select_grid.run_grid(run, options.dtype or select_grid.DTYPES, methods=options.method)
    print(select_grid.all_seconds(rows), end="\n\n")
    print(select_grid.table(rows))
    return 1 if run.wrong else 0


def run_topk(options: argparse.Namespace) -> int:
    """Prove, time and judge select_k against torch.topk."""
    from . import select_topk

    run = open_run(options)
    print(select_topk.table(select_topk.run_topk(run)))
    return 1 if run.wrong else 0


def learn(options: argparse.Namespace) -> int:
    """Write auto's table from the results file."""
    from . import select_learn, select_sweep

    path = results_path(options)
    entries = select_learn.learn(select_sweep.read(path))
    if not entries:
        raise SystemExit(f"{path} holds no rows of a grid")
    merged = select_learn.merge(select_learn.TABLE, entries)
    print(f"{len(entries)} cells learnt, {len(merged)} in {select_learn.TABLE}")
    return 0


def main(arguments: list[str]) -> int:
    """Run what was asked for; the exit status."""
    options = build_parser().parse_args(arguments)
    checked(options)
    if options.plot_only:
        names = [options.paper] if options.paper else PAPERS
        draw(results_path(options), [paper_of(name) for name in names], options.figure)
        return 0
    if options.bars:
        return run_bars(options)
    if options.topk:
        return run_topk(options)
    if options.paper:
        return run_paper(options)
    status = run_grid(options) if options.grid else 0
    return max(status, learn(options)) if options.learn else status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
