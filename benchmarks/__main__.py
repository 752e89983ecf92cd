"""Benchmarks of tonari; every answer is verified before it is timed.

    python -m benchmarks list                                   all suites and papers: their cases and bars (bounds)
    python -m benchmarks list kdtree --device cuda              the cases of one suite, on one device
    python -m benchmarks run exact_cpu                          all its cases, with the best instruction set
    python -m benchmarks run exact_cpu --case 'graph-*' --case l1     some of them (shell patterns)
    python -m benchmarks run exact_cpu --isa amx --isa avx512   one process per instruction set
    python -m benchmarks run nn_descent --who pynndescent       only contestants with these names
    python -m benchmarks run kdtree --device cuda --budget 540  on a GPU; end within nine minutes
    python -m benchmarks run exact_cuda --warm                  compile in parallel processes first
    python -m benchmarks run tang2015 --case fig6               a figure of a paper, from this machine
    python -m benchmarks run select --scale 0.02 --no-csv       a quick run; bars are judged only at full size
    python -m benchmarks campaign --to DIR --budget 540         all suites and papers, in parts; a later call goes on
    python -m benchmarks campaign --to DIR --collect            append the rows of DIR to benchmarks/results
    python -m benchmarks compare --base main exact_cpu          two commits side by side; status 1 if a case is slower
    python -m benchmarks compare --base /tmp/base small         the same without git: /tmp/base has the other tonari/
    python -m benchmarks plot                                   all figures in docs/images, from the results
    python -m benchmarks report                                 the tables of README.md and docs, from the results
    python -m benchmarks report --check                         status 1 if a document differs from its rows
    python -m benchmarks prune                                  drop the rows that no table, figure or page needs
    python -m benchmarks tune kdtree --quick                    time other values for the constants in kdtree/tuning.py
    python -m benchmarks learn                                  write the table by which select_k's auto chooses
    python -m benchmarks machine                                processor, versions, measured ceilings

Rows are printed and appended to benchmarks/results/<suite>.csv as soon as they exist (benchmarks/harness/rows.py
describes the columns; a paper's rows are in the file of the suite that it belongs to). On another machine, write to
another file (--csv $OUT/x.csv), and append all its lines afterwards. With --budget, a case that would not end in time
is noted as "not reached", and another run can measure it. The exit status is 1 if an answer failed its proof or
something crashed; a missed bar is shown and recorded, but does not change the status.

In a copy without git, PYTHONPATH=src:. and TONARI_COMMIT name the measured code. Real descriptors are read from the
.bvecs file that TONARI_SIFT names, or from shared/data, or computed from photographs (a minute on 16 cores; kept in
benchmarks/.cache).
"""

from __future__ import annotations

import argparse
import importlib
import sys
from pathlib import Path
from typing import Any

from . import papers, suites
from .harness import command, machine
from .harness.case import Suite

# NumPy, torch and tonari are imported when a run begins, after processors are pinned and TONARI_ISA is set.

NAMES = (*suites.NAMES, *papers.NAMES)
_SOURCES = machine.ROOT / "src" / "tonari"
ROOMS = tuple(sorted(path.parent.relative_to(_SOURCES).as_posix() for path in _SOURCES.rglob("tuning.py")))
MACHINE_LIBRARIES = ("tonari", "numpy", "torch", "triton", "faiss-cpu", "scikit-learn")


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    verbs = parser.add_subparsers(dest="verb", required=True)
    listing = verbs.add_parser("list", help="the cases and what they are held to")
    listing.add_argument("suite", nargs="?", choices=NAMES, metavar="SUITE", help="suite or paper (default all)")
    listing.add_argument("--device", choices=("cpu", "cuda"))
    listing.add_argument("--case", action="append", metavar="PATTERN")
    run = verbs.add_parser("run", help="prove, then time")
    run.add_argument("suite", choices=NAMES, metavar="SUITE", help=", ".join(NAMES))
    command.add_options(run)
    command.add_run_options(run)
    campaign = verbs.add_parser("campaign", help="measure all suites and papers at one commit, in parts")
    campaign.add_argument("--to", type=Path, required=True, help="folder of the rows; one for each machine and commit")
    campaign.add_argument("--suite", action="append", choices=NAMES, metavar="SUITE", help="repeatable (default all)")
    campaign.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="where (default cpu)")
    campaign.add_argument("--turns", type=int, default=1, help="how often each case is measured (default 1)")
    campaign.add_argument("--budget", type=float, default=float("inf"), help="seconds that this call may take")
    campaign.add_argument("--part", type=float, default=540.0, help="seconds that a case may take (default 540)")
    campaign.add_argument("--threads", type=int, default=2, help="threads for everyone on the CPU (default 2)")
    campaign.add_argument("--scale", type=float, default=1.0, help="shrink points and queries by this factor")
    campaign.add_argument("--list", action="store_true", help="print the parts that are left, and measure nothing")
    campaign.add_argument("--collect", action="store_true", help="append the rows to benchmarks/results")
    compare = verbs.add_parser("compare", help="time two commits side by side")
    compare.add_argument("suite", nargs="?", default="exact_cpu", choices=suites.NAMES, metavar="SUITE")
    compare.add_argument(
        "--base",
        required=True,
        help="what the present tree is compared with: a commit, or a folder with tonari/, as pip's --target makes",
    )
    compare.add_argument("--tolerance", type=float, default=0.05, help="slower by more is a failure (default 0.05)")
    command.add_options(compare)
    plot = verbs.add_parser("plot", help="draw figures of the results")
    plot.add_argument("suite", nargs="?", choices=NAMES, metavar="SUITE", help="suite or paper (default all)")
    plot.add_argument("--csv", type=Path, help="results file (default benchmarks/results/<suite>.csv)")
    plot.add_argument("--to", type=Path, help="folder (default docs/images)")
    report = verbs.add_parser("report", help="write the tables of README.md and docs from the results")
    report.add_argument("--check", action="store_true", help="write nothing; status 1 where a document differs")
    verbs.add_parser("prune", help="drop the rows of benchmarks/results that no table, figure or page needs")
    tune = verbs.add_parser("tune", help="time other values of the constants in a room's tuning.py")
    tune.add_argument("room", choices=ROOMS, metavar="ROOM", help=", ".join(ROOMS))
    tune.add_argument("--name", action="append", metavar="PATTERN", help="constants to try, repeatable (default all)")
    tune.add_argument("--quick", action="store_true", help="small cases and few rounds: does it run")
    tune.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="where (default cpu)")
    tune.add_argument("--scale", type=float, help="shrink points and queries by this factor (default 1)")
    tune.add_argument("--repeats", type=int, help="timed rounds (default 7)")
    tune.add_argument("--threads", type=int, default=2, help="threads on the CPU (default 2)")
    tune.add_argument("--isa", action="append", help="force an instruction set: generic avx2 avx512 amx")
    learn = verbs.add_parser("learn", help="write the table of select_k's auto from the results")
    learn.add_argument("--csv", type=Path, help="results file (default benchmarks/results/select.csv)")
    ceilings = verbs.add_parser("machine", help="measure what this machine can do at most")
    ceilings.add_argument("--threads", type=int, default=2)
    # Commands that `run --warm` and `compare` start in separate processes.
    warm = verbs.add_parser("warm-case")
    warm.add_argument("suite", choices=suites.NAMES)
    warm.add_argument("case")
    warm.add_argument("scale", type=float)
    serve = verbs.add_parser("serve-case")
    serve.add_argument("suite", choices=suites.NAMES)
    command.add_options(serve)
    return parser


def load(name: str) -> Suite:
    """Return the suite or the paper with this name."""
    package = "suites" if name in suites.NAMES else "papers"
    found: Suite = importlib.import_module(f"benchmarks.{package}.{name}").SUITE
    return found


def list_cases(options: argparse.Namespace) -> int:
    """Print the cases of suites and papers, with their bars."""
    for name in [options.suite] if options.suite else NAMES:
        suite = load(name)
        print(f"{name}\n{command.listing(suite, options.device, options.case)}\n")
    return 0


def run(options: argparse.Namespace, arguments: list[str]) -> int:
    """Verify and time cases; return the exit status."""
    suite = load(options.suite)
    command.checked(options, suite)
    cases = suite.chosen(options.device, options.case)
    if options.isa and len(options.isa) > 1:
        return command.one_process_each(options.isa, arguments)
    warms = options.warm or options.warm_only
    if warms and suite.name != "exact_cuda":
        raise SystemExit(f"--warm compiles for exact_cuda only, not for {suite.name}")
    command.settle(options)
    opened = command.open_run(suite, options)
    from .harness.proof import neighbors
    from .harness.run import run_cases

    if warms:
        from .suites.exact_cuda import warm

        warm.warm_all(suite, options, cases)
        if options.warm_only:
            return 0
    print(opened.describe(), flush=True)
    if suite.torch:
        from tonari.metrics import reference

        neighbors.self_check(reference, opened.where)
    run_cases(opened, cases)
    return 1 if opened.wrong else 0


def campaign(options: argparse.Namespace) -> int:
    """Measure suites and papers at one commit, in parts; return the exit status."""
    from .harness import campaign

    for name in ("turns", "budget", "part", "threads"):
        if getattr(options, name) <= 0:
            raise SystemExit(f"--{name} is {getattr(options, name)}, expected above 0")
    return campaign.campaign([load(name) for name in options.suite or NAMES], options)


def compare(options: argparse.Namespace) -> int:
    """Time the present tree and a base side by side; return the exit status."""
    from .harness import compare

    suite = load(options.suite)
    command.checked(options, suite)
    return compare.compare(suite, options)


def plot(options: argparse.Namespace) -> int:
    """Draw the figures of docs/images from the results."""
    from .harness.plots import IMAGES
    from .harness.rows import read

    for name in [options.suite] if options.suite else NAMES:
        suite = load(name)
        if suite.figures is not None:
            for figure in suite.figures(read(options.csv or suite.path)):
                if drawn := figure.write(options.to or IMAGES):
                    print(drawn)
    return 0


def report(options: argparse.Namespace) -> int:
    """Write the tables of README.md and docs from the results; return the exit status."""
    from .harness.report import report
    from .suites.tables import CODE, TABLES

    return report(TABLES, CODE, check=options.check)


def prune(options: argparse.Namespace) -> int:
    """Drop the rows of results that no table, figure or page needs."""
    from .harness.pruning import prune
    from .harness.report.history import History
    from .suites.select import learn
    from .suites.tables import CODE, TABLES
    from .suites.tables.prose import QUOTED

    history = History(machine.ROOT, CODE)
    history.require()
    prune(TABLES, history, [load(name) for name in NAMES], quoted=QUOTED, learners={"select": learn.decisive})
    return 0


def tune(options: argparse.Namespace) -> int:
    """Time other values for the constants in a tonari package's tuning.py; return the exit status."""
    options.scale = options.scale or (0.02 if options.quick else 1.0)
    options.repeats = options.repeats or (3 if options.quick else 7)
    options.csv, options.no_csv = None, True
    command.settle(options)
    from .harness import tuning

    def opened(suite: Suite) -> Any:
        return command.open_run(suite, command.checked(argparse.Namespace(**vars(options)), suite))

    return tuning.tune(options, load, opened)


def learn(options: argparse.Namespace) -> int:
    """Write the table by which ``select_k``'s auto chooses a method, learnt from the rows of the suite select."""
    from .harness.rows import read
    from .suites.select import learn

    path = options.csv or load("select").path
    entries = learn.learn(read(path))
    if not entries:
        raise SystemExit(f"{path} holds no rows of a grid")
    merged = learn.merge(learn.TABLE, entries)
    print(f"{len(entries)} cells learnt, {len(merged)} in {learn.TABLE}")
    return 0


def describe_machine(options: argparse.Namespace) -> int:
    """Print the facts and the ceilings of this machine."""
    machine.pin(options.threads)
    from .harness import ceilings

    print(machine.describe(MACHINE_LIBRARIES))
    print(ceilings.describe(options.threads))
    return 0


def warm_case(options: argparse.Namespace) -> int:
    """Compile the kernels that one case needs."""
    from .suites.exact_cuda import warm

    return warm.warm_one(load(options.suite), options.case, options.scale)


def serve_case(options: argparse.Namespace) -> int:
    """Run one side of a comparison, which answers requests on standard input."""
    from .harness import compare

    suite = load(options.suite)
    compare.serve(suite, command.checked(options, suite))
    return 0


def main(arguments: list[str]) -> int:
    """Run the command that the command line names; return the exit status."""
    options = build_parser().parse_args(arguments)
    if options.verb == "run":
        return run(options, arguments)
    verbs = {
        "list": list_cases,
        "campaign": campaign,
        "compare": compare,
        "plot": plot,
        "report": report,
        "prune": prune,
        "tune": tune,
        "learn": learn,
        "machine": describe_machine,
        "warm-case": warm_case,
        "serve-case": serve_case,
    }
    return verbs[options.verb](options)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
