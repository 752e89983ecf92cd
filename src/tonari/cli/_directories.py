"""Output to a directory, for commands whose points may be larger than memory."""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

import click
from click.core import ParameterSource

from tonari.cli import _common
from tonari.graph.knn_graph import KNNGraph
from tonari.shards.state import read_state


def names_a_directory(output: str) -> bool:
    """Return whether the output is a directory: one that exists, or a name that ends with a slash."""
    return output.endswith(("/", os.sep)) or Path(output).is_dir()


def refuse(context: click.Context, names: Iterable[str], why: str) -> None:
    """Raise a usage error, with the reason `why`, if the user has set one of the named options."""
    for parameter in context.command.params:
        given = context.get_parameter_source(str(parameter.name)) is not ParameterSource.DEFAULT
        if given and parameter.name in names:
            raise click.BadParameter(why, context, parameter)


def load_graph(path: Path) -> KNNGraph:
    """Load a graph from a file, or memory-map it from a directory."""
    return KNNGraph.open(path) if path.is_dir() else KNNGraph.load(path)


def check_points(points: Path, key: str | None, graph: Path) -> None:
    """Raise an error if the file of points contains a graph or neighbours, as when arguments are swapped."""
    kind = "points" if key is not None else _common.kind_of(points)
    if kind != "points":
        what = "a graph" if kind == "graph" else "neighbours"
        raise ValueError(f"{points}: holds {what}, expected the points from which {graph} was built")


@contextlib.contextmanager
def told(folder: Path, *, force: bool) -> Iterator[None]:
    """Print to stderr, for a build in the ``with`` block, its plan and warnings and, after Ctrl-C, how to resume it."""
    try:
        with _plans_as_lines(), _common.warnings_as_lines():
            yield
    except KeyboardInterrupt:
        _tell_what_is_kept(folder, force=force)
        raise


@contextlib.contextmanager
def _plans_as_lines() -> Iterator[None]:
    plans = logging.getLogger("tonari.plan")
    if plans.isEnabledFor(logging.INFO):  # with -v, the log has shown the plan already
        yield
        return
    handler = _common.log_handler()
    plans.addHandler(handler)
    plans.setLevel(logging.INFO)
    try:
        yield
    finally:
        plans.setLevel(logging.NOTSET)
        plans.removeHandler(handler)


def _tell_what_is_kept(folder: Path, *, force: bool) -> None:
    try:
        state = read_state(folder)
    except FileNotFoundError:  # there is nothing to resume, because no build has begun
        return
    if state.tasks_done:
        known = f"{state.tasks_known:,} tasks" if state.all_known else f"the {state.tasks_known:,} tasks known so far"
        how = "the same command without --force" if force else "the same command"
        _common.say(f"tonari: {state.tasks_done:,} of {known} are done in {folder}; {how} resumes from there", err=True)
