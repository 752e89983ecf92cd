"""The options --radius and --min-similarity, and their check against the metric."""

from __future__ import annotations

import math

import click

from tonari.metrics import METRICS, get_metric


def _number(context: click.Context, parameter: click.Parameter, value: float | None) -> float | None:
    if value is not None and math.isnan(value):
        raise click.BadParameter("is not a number", context, parameter)
    return value


radius_option = click.option(
    "--radius",
    metavar="R",
    type=click.FloatRange(min=0),
    callback=_number,
    help="Find all points within this distance; squared for sqeuclidean.",
)
min_similarity_option = click.option(
    "--min-similarity",
    metavar="S",
    type=float,
    callback=_number,
    help="Find all points with at least this similarity, for inner_product, cosine and correlation.",
)


def check_radius(context: click.Context, metric: str, radius: float | None, min_similarity: float | None) -> bool:
    """Return whether --radius or --min-similarity is set; raise a usage error if it does not apply to the metric."""
    record = get_metric(metric)
    if radius is not None and min_similarity is not None:
        raise click.UsageError("--radius and --min-similarity exclude each other; leave one out", context)
    if radius is not None and record.descending:
        raise click.UsageError(f"--radius: {metric} has similarities; use --min-similarity", context)
    if min_similarity is not None:
        if not (record.descending or record.angular):
            similar = [name for name, one in METRICS.items() if one.descending or one.angular]
            others = f"{', '.join(similar[:-1])} or {similar[-1]}"
            message = f"--min-similarity: {metric} has distances; use --radius, or --metric {others}"
            raise click.UsageError(message, context)
        if not math.isfinite(min_similarity):
            raise click.UsageError("--min-similarity: is infinite; expected a finite number", context)
    return radius is not None or min_similarity is not None
