"""tonari plan: what a graph or a search would do and cost, without doing it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from tonari import io
from tonari.cli import _common
from tonari.methods import plan as planning


def _precisions(context: click.Context, parameter: click.Parameter, value: str | None) -> tuple[str, ...] | None:
    return None if value is None else tuple(value.split(","))


@click.command()
@_common.file_argument("points")
@_common.k_option
@click.option("--queries", metavar="M", type=click.IntRange(min=1), help="Plan a search of M queries, not a graph.")
@_common.metric_option
@_common.graph_method_option
@_common.recall_option
@_common.seed_option
@_common.key_option
@_common.device_option
@_common.threads_option
@_common.memory_option
@_common.json_option
@click.option("--isa", help="Override: instruction set, such as avx2.")
@click.option("--ladder", callback=_precisions, help="Override: precisions of the screen, such as int8,float32.")
@click.option("--query-block", type=click.IntRange(min=1), help="Override: queries that share one pass.")
@click.option("--point-chunk", type=click.IntRange(min=1), help="Override: points per slice of work.")
@click.option("--capacity", type=click.IntRange(min=1), help="Override: survivors a row may hold.")
@click.option(
    "--sample-stride", metavar="N", type=click.IntRange(min=0), help="Override: screen every N-th group first."
)
@click.option("--sample-rank", type=click.IntRange(min=0), help="Override: rank in the sample that is the threshold.")
@click.option("--active-rows", type=click.IntRange(min=0), help="Override: rows of a graph that share products.")
@click.option("--point-splits", type=click.IntRange(min=1), help="Override: parts of the points searched side by side.")
@click.option("--adaptive/--no-adaptive", default=None, help="Override: whether first blocks may change the precision.")
@click.option("--resident/--no-resident", default=None, help="Override: whether packed points stay in memory.")
@click.option("--height", type=click.IntRange(min=0), help="kdtree override: 2**HEIGHT leaves.")
@click.option("--leaf", type=click.IntRange(min=1), help="kdtree override: points wanted in a leaf.")
@click.option("--sort/--no-sort", default=None, help="kdtree override: whether queries are ordered by their leaves.")
@click.option("--list-size", type=click.IntRange(min=1), help="nn-descent override: neighbours held per point.")
@click.option("--start", help="nn-descent override: clusters, random or graph.")
@click.option("--clusters", type=click.IntRange(min=1), help="nn-descent override: clusters of the start.")
@click.option("--probes", type=click.IntRange(min=1), help="nn-descent override: near clusters met in the start.")
@click.option("--training", type=click.IntRange(min=1), help="nn-descent override: points per cluster for k-means.")
@click.option("--sweeps", type=click.IntRange(min=0), help="nn-descent override: iterations of k-means.")
@click.option("--hubs", type=click.IntRange(min=1), help="nn-descent override: neighbours asked for theirs.")
@click.option("--reverse", type=click.IntRange(min=0), help="nn-descent override: reverse neighbours asked.")
@click.option("--breadth", type=click.IntRange(min=1), help="nn-descent override: neighbours that each of them gives.")
@click.option("--rounds", type=click.IntRange(min=1), help="nn-descent override: rounds, at most.")
@click.option("--sample", type=click.IntRange(min=1), help="nn-descent override: rows whose recall is measured.")
@click.option("--block", type=click.IntRange(min=1), help="nn-descent override: rows of one task.")
@click.option("--route", help="GPU override: resident, streamed or screened.")
@click.option("--shard", help="GPU override: what several devices share, points or queries.")
@click.option("--group", type=click.IntRange(min=1), help="GPU override: points per group, 8, 16 or 32.")
@click.option(
    "--width",
    type=click.IntRange(min=1),
    help="GPU override: groups of a row that are refined; nn-descent override: points met per round.",
)
@click.option("--query-batch", type=click.IntRange(min=1), help="GPU override: queries whose minima are held at once.")
@click.option("--query-slab", type=click.IntRange(min=1), help="GPU override: queries on the device at once.")
@click.option("--point-slab", type=click.IntRange(min=1), help="GPU override: points on the device at once.")
def plan(
    points: Path,
    k: int,
    queries: int | None,
    metric: str,
    method: str,
    key: str | None,
    device: str | list[str],
    threads: int | None,
    memory: int | None,
    as_json: bool,
    **overrides: Any,
) -> None:
    """Print what building the graph of POINTS would do: kernels, blocks, memory and a rough time.

    Only the header of POINTS is read, so that "auto" is planned as brute force: what a search by "auto" takes depends
    on the data. With --queries, the plan is for a search; "nn-descent" plans graphs alone.

    \b
    Example:
      tonari plan points.fbin -k 10 --memory 2GB
      tonari plan points.fbin -k 10 --queries 10000 --json
      tonari plan points.fbin -k 10 --device cuda
      tonari plan points.fbin -k 10 --method kdtree --leaf 32
      tonari plan points.fbin -k 10 --method nn-descent --recall 0.95
    """
    described = io.describe(points, key=key)
    made = planning.plan(
        described.rows,
        described.rows if queries is None else queries,
        described.columns,
        k,
        dtype=described.dtype,
        metric=metric,
        method=method,
        device=device,
        threads=threads,
        memory=memory,
        self_join=queries is None,
        **{name: value for name, value in overrides.items() if value is not None},
    )
    _common.emit(made.as_dict(), str(made), as_json=as_json)
