"""Shared by all commands: options, the check of the output path, results on stdout, and errors as exit codes."""

from __future__ import annotations

import contextlib
import json
import logging
import math
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar

import click
import numpy as np
import numpy.typing as npt

from tonari import _startup, io
from tonari.api.index.file import is_index
from tonari.cli._points import Inputs
from tonari.cli._wording import in_words, printable
from tonari.inputs import check_output_path, parse_device, parse_memory
from tonari.io._common import open_regular, parsing, size_of
from tonari.io.formats.npz import Archive
from tonari.methods.registry import check_method, check_search_method
from tonari.metrics import ALIASES, BIT_METRICS, CHANGED, MAPPED, METRICS, get_metric
from tonari.shards.state import bytes_of

Decorated = TypeVar("Decorated", bound=Callable[..., Any])

logger = logging.getLogger("tonari")

# Arrays of an .npz file.
_GRAPH = {"about", "indices", "distances"}
_NEIGHBORS = {"indices", "distances"}
# Exceptions that the library raises for data, files and machines that it cannot use. Any other exception is a defect
# and keeps its traceback.
_REFUSALS = (ValueError, TypeError, OSError, ImportError, MemoryError)


class Program(click.Group):
    """A group of commands that reports every failure as one line on stderr (JSON with --json) and an exit code."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> Any:
        """Run the command line and exit; if `standalone_mode` is False, return the result or raise instead."""
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
    if isinstance(error, OSError) and error.strerror:  # raised by the system, not worded by this library
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


def kind_of(path: Path) -> Literal["graph", "index", "neighbours", "points"]:
    """Return the kind of a file from its header alone; the rest of the file may be damaged.

    The names of its arrays show whether an .npz file is a graph or neighbours, and its size whether an .ibin file
    contains neighbours. HDF5 files may contain both points and neighbours: they count as points. A directory is a
    graph. An Index is recognised by its first bytes.
    """
    if path.is_dir():
        return "graph"
    if is_index(path):
        return "index"
    if path.suffix.lower() == ".npz":
        with Archive(path, math.inf) as archive:
            keys = set(archive.keys)
        return "graph" if keys - {"transform"} == _GRAPH else "neighbours" if keys == _NEIGHBORS else "points"
    truth = path.suffix.lower() == ".ibin" and io.describe(path).format == "ground truth"
    return "neighbours" if truth else "points"


def emit(facts: dict[str, Any], text: str, *, as_json: bool, inputs: Inputs | None = None) -> None:
    """Print the result as one JSON object, `facts`, or as `text`; also print the description of the input."""
    if inputs is not None and inputs.facts:
        facts, text = facts | {"read": inputs.facts}, inputs.text + text
    say(json.dumps(facts, allow_nan=False) if as_json else text)


def emit_output(
    output: Path, facts: dict[str, Any], text: str, started: float, *, as_json: bool, inputs: Inputs
) -> None:
    """Print the number of results, the output file or directory and its size, and the seconds since `started`."""
    seconds = time.perf_counter() - started
    size = bytes_of(output) if output.is_dir() else output.stat().st_size
    facts = {"output": str(output), **facts, "seconds": seconds, "bytes": size}
    text = f"{text}, {facts['metric']}, in {seconds:.3g} s\nwrote {click.format_filename(output)}, {size:,} bytes"
    emit(facts, text, as_json=as_json, inputs=inputs)


@contextlib.contextmanager
def warnings_as_lines() -> Iterator[None]:
    """Show the library's warnings as lines on stderr, in the form of errors, once the work is done."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        yield
    for warning in caught:
        say(f"tonari: warning: {' '.join(str(warning.message).splitlines())}", err=True)


def _checked(check: Callable[[Any], Any]) -> Callable[[click.Context, click.Parameter, Any], Any]:
    """Return a callback that replaces the value of an option by that of a function; its ValueErrors name the option."""

    def callback(context: click.Context, parameter: click.Parameter, value: Any) -> Any:
        try:
            return check(value)
        except ValueError as error:
            raise click.BadParameter(str(error), context, parameter) from error

    return callback


def _method(name: str) -> str:
    check_method(name)
    return name


def _search_method(name: str) -> str:
    check_search_method(name)
    return name


def _device(value: str) -> str | list[str]:
    """Return a device, or several that are separated by commas."""
    device = value.split(",") if "," in value else value
    parse_device(device)
    return device


checked_device = _checked(_device)
named_metric = _checked(lambda name: None if name is None else get_metric(name).name)


def _verbose(context: click.Context, parameter: click.Parameter, count: int) -> None:
    if count:  # Program.main removes the handler
        logger.addHandler(log_handler())
        logger.setLevel(logging.INFO if count == 1 else logging.DEBUG)


class _Printable(logging.Formatter):
    """A formatter of lines that escapes control characters."""

    def format(self, record: logging.LogRecord) -> str:
        return printable(super().format(record))


def log_handler() -> logging.Handler:
    """Return a handler that writes lines to stderr in the form of errors."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Printable("tonari: %(message)s"))
    return handler


def file_argument(name: str) -> Callable[[Decorated], Decorated]:
    """Declare a file to read; its reader checks that it exists and is sound."""
    return click.argument(name, metavar=name.upper(), type=click.Path(path_type=Path))


def output_option(formats: str, *, directories: bool = False) -> Callable[[Decorated], Decorated]:
    """Declare -o and --force; with `directories`, the output may be a directory, as a str that keeps a final slash."""

    def decorate(command: Decorated) -> Decorated:
        text = f"Output file: {formats}. It is written whole or not at all."
        if directories:
            text += " Or a directory, such as DIR/, for more points than memory holds."
            force = click.option(
                "--force/--resume",
                help="Replace the output if it exists; in a directory, begin anew. Default: resume, in a directory.",
            )
        else:
            force = click.option("--force", is_flag=True, help="Replace the output if it exists.")
        command = force(command)
        out = click.Path(path_type=str if directories else Path)
        return click.option("-o", "--output", metavar="OUT", type=out, required=True, help=text)(command)

    return decorate


_ALIASES = ", ".join(f"{alias} ({name})" for alias, name in ALIASES.items())
METRIC_NAMES = (
    f"{', '.join([*METRICS, *CHANGED])}; with a file, {', '.join(MAPPED)}; of bits, packed in bytes: "
    f"{', '.join(BIT_METRICS)}; or {_ALIASES}"
)


k_option = click.option("-k", metavar="K", type=click.IntRange(min=1), required=True, help="Neighbours per row.")
key_option = click.option(
    "--key", help="Name of the array in POINTS, if it is .npz or HDF5, or of the column of lists in a table."
)
metric_option = click.option(
    "--metric",
    metavar="METRIC",
    default="euclidean",
    show_default=True,
    callback=named_metric,
    help=f"Metric of the distances: {METRIC_NAMES}.",
)
exclude_within_option = click.option(
    "--exclude-within",
    metavar="W",
    type=click.IntRange(min=0),
    help="Leave out pairs of rows whose numbers differ by at most W (the Theiler window of a time series).",
)
method_option = click.option(
    "--method",
    default="auto",
    show_default=True,
    callback=_checked(_search_method),
    help='"exact" (brute force), "kdtree" (for few dimensions), "bits" (for hamming and jaccard), or "auto" for the '
    "fastest. The result is the same.",
)
graph_method_option = click.option(
    "--method",
    default="auto",
    show_default=True,
    callback=_checked(_method),
    help='"exact" (brute force), "kdtree" (for few dimensions), "bits" (for hamming and jaccard), "nn-descent" '
    '(approximate, to the given --recall), or "auto" for the fastest; without --recall "auto" is exact.',
)
recall_option = click.option(
    "--recall",
    metavar="SHARE",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    help='Share of the true neighbours to find, such as 0.95, for "nn-descent" (default 0.99) and "auto".',
)
seed_option = click.option(
    "--seed",
    type=click.IntRange(0, 2**32 - 1),
    help='Seed of the random choices of "nn-descent"; default: 0. The same seed gives the same graph.',
)
device_option = click.option(
    "--device",
    default="auto",
    show_default=True,
    callback=checked_device,
    help='Where to search: "cpu" ("auto" means this for files), "cuda", "cuda:1", "cuda:0,cuda:1" or "cuda:all".',
)
threads_option = click.option(
    "--threads",
    type=click.IntRange(min=1),
    help="Threads on the CPU; default: chosen by the amount of work, at most the processors this process may use.",
)
memory_option = click.option(
    "--memory",
    metavar="SIZE",
    callback=_checked(parse_memory),
    help='Limit on the memory beyond the input (on GPUs, of each GPU), such as "2GB" or "512MiB".',
)
progress_option = click.option(
    "--progress/--no-progress",
    default=None,
    help="Show a progress bar on stderr; default: on a terminal, for longer work.",
)
json_option = click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print the result, or on stderr the error, as one JSON object.",
)
verbose_option = click.option(
    "-v",
    "--verbose",
    count=True,
    expose_value=False,
    callback=_verbose,
    help="Log the steps of each search to stderr; twice: also the traceback of an error.",
)


COLUMNS = {
    "VI": "For mahalanobis: the inverse covariance of the columns, a d x d matrix.",
    "covariance": "For mahalanobis, instead of --VI: the covariance of the columns.",
    "V": "For seuclidean: the variance of each column.",
    "transform": "A d x p matrix that rows are multiplied by before they are compared.",
}


def columns_options(command: Decorated) -> Decorated:
    """Declare --VI, --covariance, --V and --transform: files of arrays that change the rows."""
    for name, text in reversed(COLUMNS.items()):
        kind = click.Path(path_type=Path)
        command = click.option(f"--{name}", name, metavar="FILE.npy", type=kind, help=text)(command)
    return command


def with_columns(options: dict[str, Any]) -> dict[str, Any]:
    """Replace the files of :func:`columns_options` by their arrays, and leave out options without a file."""
    read = {name: read_array(options[name]) for name in COLUMNS if options[name] is not None}
    return {name: value for name, value in options.items() if name not in COLUMNS} | read


def read_array(path: Path) -> npt.NDArray[Any]:
    """Map a .npy file of any dtype."""
    fix = "Save the array with numpy.save."
    with open_regular(path), parsing(path, size_of(path), "an array of numbers", fix):
        array: npt.NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
    return array


def report_options(command: Decorated) -> Decorated:
    """Declare --progress, --json and --verbose."""
    return progress_option(json_option(verbose_option(command)))


def work_options(command: Decorated) -> Decorated:
    """Declare --device, --threads, --memory, and the options of :func:`report_options`."""
    return device_option(threads_option(memory_option(report_options(command))))
