"""tonari pairs: find all pairs of points within a distance of each other."""

from __future__ import annotations

import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

import click
import numpy as np

from tonari.api import pairing
from tonari.cli import _common, _options, tuning
from tonari.cli._points import Inputs, check_radius, id_option, inputs_option, min_similarity_option, radius_option
from tonari.core.results.pairs import Pairs
from tonari.io._common import Array
from tonari.io.neighbors.pairs import SUFFIXES, write_pairs


@click.command()
@_options.file_argument("points")
@radius_option
@min_similarity_option
@_options.output_option(".npy, with records of left, right and distance")
@_options.metric_option
@_options.columns_options
@_options.method_option
@_options.exclude_within_option
@_options.key_option
@inputs_option
@id_option
@_options.work_options
@click.pass_context
def pairs(
    context: click.Context,
    /,
    points: Path,
    radius: float | None,
    min_similarity: float | None,
    output: Path,
    force: bool,
    metric: str,
    key: str | None,
    read: Inputs,
    as_json: bool,
    **options: Any,
) -> None:
    """Find all pairs of POINTS within a radius of each other, or above a similarity, each pair once.

    Pairs are ordered by the left point, then by distance, then by the right point, whose row number is larger. They are
    written block by block, so there may be more than fit in memory.

    \b
    Example:
      tonari pairs texts.npy --metric cosine --min-similarity 0.95 -o alike.npy
      tonari pairs stars.npy --radius 0.01 -o near.npy
    """
    options = _options.with_columns(options)
    if not check_radius(context, metric, radius, min_similarity):
        raise click.UsageError("what is near? Give --radius or --min-similarity", context)
    target = _common.check_output(output, SUFFIXES, inputs=(points,), force=force)
    read.check([points])
    started = time.perf_counter()
    base, names = read.read(points, key), read.names_of_rows(points)
    find = partial(pairing.pairs, base, radius, min_similarity=min_similarity, metric=metric, **options)
    if names is None:
        find(out=target)
    else:
        with tempfile.TemporaryDirectory(dir=target.parent) as folder:
            numbered = Path(folder, "pairs.npy")
            find(out=numbered)
            _name(numbered, names, target)
    count = len(np.load(target, mmap_mode="r"))
    facts = {"points": base.shape[0], "pairs": count, "metric": metric}
    text = f"{count:,} pairs of {base.shape[0]:,} points"
    _common.emit_output(target, facts, text, started, as_json=as_json, inputs=read)


def _name(numbered: Path, names: Array, target: Path) -> None:
    """Rewrite pairs of row numbers as pairs of row names, block by block."""
    records = np.load(numbered, mmap_mode="r")
    starts = range(0, len(records), tuning.NAMED_AT_ONCE)
    found = (records[start : start + tuning.NAMED_AT_ONCE] for start in starts)
    blocks = (Pairs(block["left"], block["right"], block["distance"]) for block in found)
    write_pairs(target, blocks, records.dtype["left"], records.dtype["distance"], names)
