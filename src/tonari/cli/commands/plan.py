"""tonari plan: print the plan of a graph or a search without running it; tonari warm: compile its kernels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from tonari.api.planning import explain as explaining
from tonari.api.planning import plan as planning
from tonari.cli import _common, _options
from tonari.cli._points import Inputs, inputs_option
from tonari.inputs.overrides import read_override
from tonari.methods.registry import NAMES, by_force, overrides_of


def _fields() -> str:
    """Return, as text for --help, the plan fields that --set accepts for each method and device."""
    lines = ["\b", "Fields that --set can give:"]
    for name in NAMES:
        for device in ("cpu", "cuda"):
            lines.append(f"  {name} on {device}:")
            lines += [f"    {field:<14} {known.meaning}" for field, known in overrides_of(name, device).items()]
    return "\n".join(lines)


@click.command(epilog=_fields())
@_options.file_argument("points")
@_options.k_option
@click.option("--queries", metavar="M", type=click.IntRange(min=1), help="Plan a search of M queries, not a graph.")
@_options.metric_option
@_options.graph_method_option
@_options.recall_option
@_options.seed_option
@_options.key_option
@inputs_option
@_options.device_option
@_options.threads_option
@_options.memory_option
@_options.json_option
@click.option(
    "--set",
    "settings",
    metavar="NAME=VALUE",
    multiple=True,
    help="Set a field of the plan (listed below); may be repeated.",
)
def plan(
    points: Path,
    k: int,
    queries: int | None,
    metric: str,
    method: str,
    recall: float | None,
    seed: int | None,
    key: str | None,
    read: Inputs,
    device: str | list[str],
    threads: int | None,
    memory: int | None,
    as_json: bool,
    settings: tuple[str, ...],
) -> None:
    """Print the plan for building the graph of POINTS: kernels, blocks, memory and a rough time.

    The first line names the method that "auto" chooses. Below the plan, each method has its expected time and memory,
    or the reason why it cannot solve the problem. Only the header of POINTS is read: if the choice depends on the data,
    the first line says so, and the plan is for brute force. With --queries, the plan is for a search; "nn-descent" can
    plan only graphs.

    \b
    Example:
      tonari plan points.fbin -k 10 --memory 2GB
      tonari plan points.fbin -k 10 --queries 10000 --json
      tonari plan points.fbin -k 10 --device cuda --set route=streamed
      tonari plan points.fbin -k 10 --method kdtree --set leaf=32 --set sort=no
      tonari plan points.fbin -k 10 --method nn-descent --recall 0.95
    """
    read.check([points])
    described = read.describe(points, key)
    n, d = described.rows, described.columns
    known = overrides_of(
        by_force(metric) if method == "auto" else method, "cpu" if device in ("auto", "cpu") else "cuda"
    )
    shared: dict[str, Any] = {"metric": metric, "device": device, "threads": threads, "memory": memory}
    fields: dict[str, Any] = {"recall": recall, "seed": seed} | dict(read_override(text, known) for text in settings)
    fields |= {"dtype": described.dtype, "method": method, "self_join": queries is None}
    planned = planning.plan(n, n if queries is None else queries, d, k, **shared, **fields)
    searched = None if queries is None else (queries, d)
    approximate = recall if queries is None else None
    explained = explaining.explain(searched, (n, d), k, dtype=described.dtype, recall=approximate, **shared)
    _common.emit(planned.as_dict() | {"auto": explained.as_dict()}, f"{planned}\n\n{explained}", as_json=as_json)


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
    count = planning.warm(
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
