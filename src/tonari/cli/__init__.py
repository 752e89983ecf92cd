"""The command line: each command reads files, calls one function of the library, and writes or prints the result.

Each command is a module of commands/:

    tonari graph    the k nearest neighbours of each point among the others      graph.py
    tonari search   the k nearest points of each query                           search.py
    tonari pairs    all pairs of points within a distance of each other          pairs.py
    tonari merge    the graph of all points of two graphs                        merge.py
    tonari recall   the recall of a graph, or of found neighbours                recall.py
    tonari verify   the errors in neighbours that any program has found          verify.py
    tonari report   a page about a graph, in HTML                                report.py
    tonari info     the contents of a file                                       info.py
    tonari convert  points from one format to another                        convert.py
    tonari plan     the choices, memory and time of a run, without running it    plan.py
    tonari warm     compile the GPU kernels of a search in advance               plan.py

Results go to stdout; progress, the log (-v) and errors go to stderr, an error as one line.
Exit codes: 0 success, 1 data or files that cannot be used, 2 wrong usage, 130 interrupted (Ctrl-C).
"""

from __future__ import annotations

import click

from tonari.cli._common import Program
from tonari.cli.commands.convert import convert
from tonari.cli.commands.graph import graph
from tonari.cli.commands.info import info
from tonari.cli.commands.merge import merge
from tonari.cli.commands.pairs import pairs
from tonari.cli.commands.plan import plan, warm
from tonari.cli.commands.recall import recall
from tonari.cli.commands.report import report
from tonari.cli.commands.search import search
from tonari.cli.commands.verify import verify
from tonari.core.version import __version__

__all__ = ["main"]


@click.group(cls=Program, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="tonari")
@click.pass_context
def main(context: click.Context) -> None:
    """Find k nearest neighbours, exactly, and build k-NN graphs, exactly or to a given recall.

    Points and queries are files with one row per point; the suffix names the format: .fvecs .bvecs .fbin .f16bin
    .u8bin .i8bin .npy .npz .hdf5 .h5 .csv .tsv .parquet .arrow

    \b
    Example:
      tonari graph points.fbin -k 10 -o graph.npz
      tonari recall graph.npz points.fbin
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help(), err=True)
        context.exit(2)


for _command in (graph, search, pairs, merge, recall, verify, report, info, convert, plan, warm):
    main.add_command(_command)
