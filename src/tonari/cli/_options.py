"""The arguments and options that several commands share, and the conversion of their values."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click
import numpy as np
import numpy.typing as npt

from tonari.cli._common import log_handler, logger
from tonari.inputs import parse_device, parse_memory
from tonari.io._common import open_regular, parsing, size_of
from tonari.methods.registry import check_method, check_search_method
from tonari.metrics import BIT_METRICS, CHANGED, MAPPED, METRICS, MISSING_METRICS, get_metric
from tonari.metrics.names import ALIASES

Decorated = TypeVar("Decorated", bound=Callable[..., Any])


def _checked(check: Callable[[Any], Any]) -> Callable[[click.Context, click.Parameter, Any], Any]:
    """Return a click callback that replaces an option's value by `check(value)`; errors name the option."""

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
    """Check a device, or several devices separated by commas, which are returned as a list."""
    device = value.split(",") if "," in value else value
    parse_device(device)
    return device


checked_device = _checked(_device)
named_metric = _checked(lambda name: None if name is None else get_metric(name).name)


def _verbose(context: click.Context, parameter: click.Parameter, count: int) -> None:
    if count:  # the handler stays installed until Program.main removes it
        logger.addHandler(log_handler())
        logger.setLevel(logging.INFO if count == 1 else logging.DEBUG)


def file_argument(name: str) -> Callable[[Decorated], Decorated]:
    """Declare an argument for an input file, without checks: the function that reads the file checks it."""
    return click.argument(name, metavar=name.upper(), type=click.Path(path_type=Path))


def output_option(formats: str, *, directories: bool = False) -> Callable[[Decorated], Decorated]:
    """Declare the options -o and --force.

    With `directories`, -o also accepts a directory, as a str that keeps a final slash.
    """

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
    f"{', '.join(BIT_METRICS)}; of rows with NaN: {', '.join(MISSING_METRICS)}; or {_ALIASES}"
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
ties_option = click.option(
    "--ties",
    type=click.Choice(["first", "all"]),
    default="first",
    show_default=True,
    help='"all": also write all other points at the distance of the K-th, to a .npz file with the arrays indptr, '
    "indices and distances.",
)


def check_ties_output(context: click.Context, output: str) -> None:
    """Raise a usage error for --ties all unless the output is a .npz file.

    No other format stores lists of different lengths.
    """
    if not output.lower().endswith(".npz"):
        message = f"{output} cannot be combined with --ties; name a .npz file"
        raise click.BadParameter(message, context, param_hint="'-o'")


method_option = click.option(
    "--method",
    default="auto",
    show_default=True,
    callback=_checked(_search_method),
    help='"exact" (brute force), "kdtree" (for few dimensions), "bits" (for hamming and jaccard), "missing" (for '
    'nan_euclidean), or "auto" for the fastest. The result is the same.',
)
graph_method_option = click.option(
    "--method",
    default="auto",
    show_default=True,
    callback=_checked(_method),
    help='"exact" (brute force), "kdtree" (for few dimensions), "bits" (for hamming and jaccard), "missing" (for '
    'nan_euclidean), "nn-descent" (approximate, to the given --recall), or "auto" for the fastest; without --recall '
    '"auto" is exact.',
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
    """Declare --VI, --covariance, --V and --transform: .npy files of arrays that define a transformation of rows."""
    for name, text in reversed(COLUMNS.items()):
        kind = click.Path(path_type=Path)
        command = click.option(f"--{name}", name, metavar="FILE.npy", type=kind, help=text)(command)
    return command


def with_columns(options: dict[str, Any]) -> dict[str, Any]:
    """Replace the file of each option in :func:`columns_options` by its array; leave out options that are not set."""
    read = {name: read_array(options[name]) for name in COLUMNS if options[name] is not None}
    return {name: value for name, value in options.items() if name not in COLUMNS} | read


def read_array(path: Path) -> npt.NDArray[Any]:
    """Memory-map the array in a .npy file, of any dtype."""
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
