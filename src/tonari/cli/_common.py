"""Shared by all commands: options, the check of the output path, results on stdout, and errors as exit codes."""

from __future__ import annotations

import contextlib
import json
import logging
import math
import re
import sys
import time
import unicodedata
import warnings
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import click

from tonari import _startup, io
from tonari.api.index.files.dense import is_index
from tonari.cli._points import Inputs
from tonari.inputs import check_output_path
from tonari.io.formats.npz import Archive
from tonari.shards.state import bytes_of

_WORDS = tuple(
    (re.compile(python), words)
    for python, words in (
        (r"\bkey=:", "--key:"),
        (r"\bdrop=\['([^']*)'\]", r"--drop '\1'"),
        (r"\b(columns|drop)= ", r"--\1 "),
        (r"leave out=, or pass (.*?), with metric='(\w+)'", r"give \1, with --metric \2"),
        (r"\bby columns=", "by --columns"),
        (r"; slice the array, as in points\[:, 1:\]", ""),
        (r"try \.astype\(numpy\.(\w+)\)", r"try 'tonari convert IN OUT --dtype \1'"),
        (r"pass float64 rows, exact", "use 'tonari convert IN OUT --dtype float64', exact"),
        (r"Convert with \.astype\(\)\.", "Save it as numbers."),
        (r"Use \.reshape\(len\(array\), -1\)\.", "Save it with a row for each point."),
        (r"read it with max_expansion=(\d+)", r"set TONARI_MAX_EXPANSION=\1"),
        (r"use tonari\.io\.read_ground_truth\b", "compare it by 'tonari recall'"),
        (r"\buse tonari\.build_graph\b", "use 'tonari graph -o DIR/'"),
        (r"\buse tonari\.knn_graph\b", "use 'tonari graph'"),
        (r"\buse (method|metric|device)='([\w:-]+)'", r"use --\1 \2"),
        (r"search the queries in smaller batches", "use an output in a directory, -o DIR/"),
    )
)


# Characters that change the direction of displayed text, and so could disguise a file name.
_REORDERING = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def printable(text: str) -> str:
    """Escape control characters and characters that reverse text, which file names and contents may include.

    >>> from tonari.cli._common import printable
    >>> printable("a\\x1b]0;title\\x07.npy")
    'a\\\\x1b]0;title\\\\x07.npy'
    """
    return "".join(
        char
        if char in "\n\t" or not (unicodedata.category(char) in ("Cc", "Cs") or char in _REORDERING)
        else char.encode("unicode_escape").decode()
        for char in text
    )


def in_words(message: str) -> str:
    """Replace the Python arguments in a message's hints by command-line options.

    >>> from tonari.cli._common import in_words
    >>> in_words("a.npz: found 2 arrays, expected one. Choose with key=: x, y")
    'a.npz: found 2 arrays, expected one. Choose with --key: x, y'
    """
    for python, words in _WORDS:
        message = python.sub(words, message)
    return message


logger = logging.getLogger("tonari")

# names of the arrays in three kinds of .npz files: a graph, neighbours, and neighbour lists of different lengths
_GRAPH = {"about", "indices", "distances"}
_NEIGHBORS = {"indices", "distances"}
_LISTS = {"indptr", "indices", "distances"}
# Exceptions of the library for unusable data, files and machines, which are reported as one line. Any other exception
# is a bug, and is shown with its traceback.
_REFUSALS = (ValueError, TypeError, OSError, ImportError, MemoryError)


class Program(click.Group):
    """A click group whose commands report every failure as one line on stderr (JSON with --json) and an exit code."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> Any:
        """Run the command line and exit; with ``standalone_mode=False``, return the result or raise the error."""
        if not standalone_mode:
            return super().main(args, prog_name, complete_var, standalone_mode=False, **extra)
        as_json = "--json" in (sys.argv[1:] if args is None else args)
        level, handlers = logger.level, logger.handlers[:]
        try:
            _startup.end()
            code = super().main(args, prog_name, complete_var, standalone_mode=False, **extra)
        except (click.Abort, KeyboardInterrupt):
            code = _fail("interrupted", _startup.INTERRUPTED, "KeyboardInterrupt", as_json=as_json)
        except click.ClickException as error:
            message = f"{in_words(error.format_message())}{_where_to_look(error)}"
            code = _fail(message, error.exit_code, type(error).__name__, as_json=as_json)
        except _REFUSALS as error:
            logger.debug("traceback of the error:", exc_info=True)
            code = _fail(in_words(_describe(error)), 1, type(error).__name__, as_json=as_json)
        finally:
            logger.setLevel(level)
            logger.handlers[:] = handlers
        sys.exit(code)


def say(text: str, *, err: bool = False) -> None:
    """Print text for human readers, with control characters escaped."""
    click.echo(printable(text), err=err)


def _fail(message: str, code: int, kind: str, *, as_json: bool) -> int:
    message = " ".join(message.splitlines())
    if as_json:
        click.echo(json.dumps({"error": message, "type": kind}), err=True)
    else:
        say(f"tonari: {message if code == _startup.INTERRUPTED else f'error: {message}'}", err=True)
    return code


def _where_to_look(error: click.ClickException) -> str:
    context = getattr(error, "ctx", None)
    return "" if context is None else f" (see '{context.command_path} --help')"


def _describe(error: BaseException) -> str:
    if isinstance(error, OSError) and error.strerror:  # the message of the operating system
        return error.strerror if error.filename is None else f"{error.filename}: {error.strerror}"
    return str(error) or ("out of memory" if isinstance(error, MemoryError) else type(error).__name__)


def check_output(path: Path, suffixes: Iterable[str], *, inputs: Iterable[Path], force: bool) -> Path:
    """Check, before any work, that `path` can be written without destroying an existing file.

    Raises
    ------
    click.UsageError
        The suffix is unknown, or the output is one of the inputs.
    OSError
        The directory is missing or cannot be written to; or the file exists and `force` is not given.
    """
    try:
        target = check_output_path(path, tuple(suffixes))
    except ValueError as error:
        raise click.BadParameter(str(error), click.get_current_context(), param_hint="'-o'") from error
    if not target.exists():
        return target
    for source in inputs:
        if source.exists() and target.samefile(source):
            message = f"{target} is also an input; name another file"
            raise click.BadParameter(message, click.get_current_context(), param_hint="'-o'")
    if not force:
        raise FileExistsError(f"{target}: exists already; --force replaces it")
    return target


def kind_of(path: Path) -> Literal["graph", "index", "neighbours", "lists", "points"]:
    """Return the kind of a file from its header alone; the rest of the file may be damaged.

    The names of its arrays show whether an .npz file contains a graph, neighbours, or lists of different lengths, such
    as the result of a search within a radius. The size of an .ibin file shows whether it contains neighbours. An HDF5
    file may contain both points and neighbours, and counts as points. A directory counts as a graph. A saved Index is
    recognised by its first bytes.
    """
    if path.is_dir():
        return "graph"
    if is_index(path):
        return "index"
    if path.suffix.lower() == ".npz":
        with Archive(path, math.inf) as archive:
            keys = set(archive.keys)
        if keys - {"transform"} == _GRAPH:
            return "graph"
        return "neighbours" if keys == _NEIGHBORS else "lists" if keys == _LISTS else "points"
    truth = path.suffix.lower() == ".ibin" and io.describe(path).format == "ground truth"
    return "neighbours" if truth else "points"


def emit(facts: dict[str, Any], text: str, *, as_json: bool, inputs: Inputs | None = None) -> None:
    """Print a result: with `as_json`, `facts` as one JSON object, otherwise `text`.

    Both include the description of the input files.
    """
    if inputs is not None and inputs.facts:
        facts, text = facts | {"read": inputs.facts}, inputs.text + text
    say(json.dumps(facts, allow_nan=False) if as_json else text)


def emit_output(
    output: Path, facts: dict[str, Any], text: str, started: float, *, as_json: bool, inputs: Inputs
) -> None:
    """Print the number of results, the output file and its size, and the seconds that have passed since `started`."""
    seconds = time.perf_counter() - started
    size = bytes_of(output) if output.is_dir() else output.stat().st_size
    facts = {"output": str(output), **facts, "seconds": seconds, "bytes": size}
    text = f"{text}, {facts['metric']}, in {seconds:.3g} s\nwrote {click.format_filename(output)}, {size:,} bytes"
    emit(facts, text, as_json=as_json, inputs=inputs)


@contextlib.contextmanager
def warnings_as_lines() -> Iterator[None]:
    """Collect the library's warnings, and print them to stderr after the work, each as one line like an error."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        yield
    for warning in caught:
        say(f"tonari: warning: {' '.join(str(warning.message).splitlines())}", err=True)


class _Printable(logging.Formatter):
    """A log formatter that escapes control characters."""

    def format(self, record: logging.LogRecord) -> str:
        return printable(super().format(record))


def log_handler() -> logging.Handler:
    """Return a log handler that writes each record as one line to stderr, like an error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Printable("tonari: %(message)s"))
    return handler
