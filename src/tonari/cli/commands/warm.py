"""tonari warm: compile the kernels of a search on CUDA before the first search."""

from __future__ import annotations

from pathlib import Path

import click

from tonari.api.planning import warm as warming
from tonari.cli import _common, _options
from tonari.cli._points import Inputs, inputs_option


@click.command()
@_options.file_argument("points")
@_options.k_option
@click.option(
    "--queries", metavar="M", type=click.IntRange(min=1), help="Compile for a search of M queries instead of a graph."
)
@_options.metric_option
@_options.key_option
@inputs_option
@click.option(
    "--device",
    default="cuda",
    show_default=True,
    callback=_options.checked_device,
    help='The GPU to compile for: "cuda", "cuda:1", "cuda:0,cuda:1" or "cuda:all".',
)
@_options.progress_option
@_options.verbose_option
@_options.json_option
def warm(
    points: Path,
    k: int,
    queries: int | None,
    metric: str,
    key: str | None,
    read: Inputs,
    device: str | list[str],
    progress: bool | None,
    as_json: bool,
) -> None:
    """Compile the GPU kernels of the graph of POINTS by brute force, so that later runs need not wait for them.

    Only the header of POINTS is read. Kernels are compiled in parallel and stay on disk (TRITON_CACHE_DIR) for all
    later processes.

    \b
    Example:
      tonari warm points.fbin -k 10
      tonari warm points.fbin -k 10 --queries 10000 --metric cosine
    """
    read.check([points])
    described = read.describe(points, key)
    count = warming.warm(
        described.rows,
        described.rows if queries is None else queries,
        described.columns,
        k,
        dtype=described.dtype,
        metric=metric,
        device=device,
        self_join=queries is None,
        progress=progress,
    )
    _common.emit({"compiled": count}, f"{count} kernels compiled", as_json=as_json)
