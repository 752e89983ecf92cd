"""tonari search: find the nearest points of every query, and write them to a file or a directory."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click
import numpy as np

from tonari.api import radius, searching, writing
from tonari.api.shards import build_neighbors
from tonari.api.sparse.answers import are_sparse
from tonari.cli import _common, _options
from tonari.cli._directories import names_a_directory, refuse, told
from tonari.cli._points import (
    Inputs,
    check_named,
    check_radius,
    id_option,
    inputs_option,
    min_similarity_option,
    radius_option,
)
from tonari.core.errors import Unsupported
from tonari.core.trail import Record, recording
from tonari.io._common import open_regular, parsing, size_of
from tonari.io.filtered import properties_of, write_npz
from tonari.io.neighbors.found import SUFFIXES, check_writable, write_found
from tonari.io.neighbors.ground_truth import HDF5_SUFFIXES
from tonari.io.points import dtype_without_rows
from tonari.shards.state import read_state
from tonari.streams.output import kept


@click.command()
@_options.file_argument("points")
@_options.file_argument("queries")
@click.option(
    "-k",
    metavar="K",
    type=click.IntRange(min=1),
    help="Neighbours per row; with --radius or --min-similarity, the largest number of neighbours.",
)
@radius_option
@min_similarity_option
@_options.output_option(
    ".npz (arrays indices and distances), .ibin (Big-ANN ground truth, distances in float32), .hdf5 (neighbors and "
    "distances), .parquet, .arrow (lists) or .csv, .tsv (from, to, distance)",
    directories=True,
)
@_options.metric_option
@_options.columns_options
@_options.method_option
@click.option(
    "--where",
    metavar="FILE.npy",
    type=click.Path(path_type=Path),
    help="Mask of the points that may be found: a bool array with an entry for each of the POINTS. Rows with "
    "fewer than K neighbours end with -1.",
)
@_options.exclude_within_option
@_options.ties_option
@_options.key_option
@inputs_option
@id_option
@click.option("--queries-key", help='Name of the array in QUERIES, if it is .npz or HDF5; default in HDF5: "test".')
@_options.work_options
@click.pass_context
def search(
    context: click.Context,
    /,
    points: Path,
    queries: Path,
    k: int | None,
    radius: float | None,
    min_similarity: float | None,
    output: str,
    force: bool,
    metric: str,
    where: Path | None,
    exclude_within: int | None,
    ties: str,
    key: str | None,
    read: Inputs,
    queries_key: str | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Find the k nearest POINTS of each of the QUERIES, or all within a radius.

    Equal distances are ordered by row number. With --radius or --min-similarity the output is a .npz file with indptr,
    indices and distances: the neighbours of query i are indices[indptr[i]:indptr[i + 1]], and distances in the same
    way.

    An .ibin file is written chunk by chunk, so there may be more queries than fit in memory. Until the file is
    complete, its name is OUT.part. After an interruption the same command continues it, and --force starts over.

    If the output is a directory, the points may be larger than memory too. --memory then includes points and queries,
    the method is "exact", the plan is printed before the start, and the same command resumes. tonari.open_neighbors and
    numpy.load map the result.

    If QUERIES has no rows, the result is empty, and the output must be a file. A file of 0 bytes counts as QUERIES
    without rows if its format stores the number of columns only in its rows (.fvecs, .bvecs, .ivecs, .csv, .tsv).

    \b
    Example:
      tonari search base.u8bin queries.u8bin -k 100 -o truth.ibin
      tonari search base.u8bin queries.u8bin -k 100 --memory 8GB -o truth/
      tonari search base.npy queries.npy -k 10 --where in_stock.npy -o found.npz
      tonari search stars.npy places.npy --radius 0.01 -o near.npz
    """
    within = check_radius(context, metric, radius, min_similarity)
    if k is None and not within:
        raise click.UsageError("how many neighbours? Give -k, or --radius or --min-similarity", context)
    options = _options.with_columns(options) | {"metric": metric}
    values = ("where", where), ("exclude_within", exclude_within)
    names = [name for name, value in values if value is not None]
    if names and (names_a_directory(output) or output.lower().endswith(".ibin")):
        message = f"{output} cannot be combined with --{names[0].replace('_', '-')}; name a .npz file"
        raise click.BadParameter(message, context, param_hint="'-o'")
    if ties == "all":
        if within:
            message = "a radius has no K-th neighbour; leave it out"
            raise click.BadParameter(message, context, param_hint="'--ties'")
        _options.check_ties_output(context, output)
    if within:
        if names_a_directory(output):
            message = f"{output} is a directory, which holds k neighbours of each query; name a .npz file, or give -k"
            raise click.BadParameter(message, context, param_hint="'-o'")
        target = _common.check_output(Path(output), (".npz",), inputs=(points, queries), force=force)
        check_named(context, target, read)
        read.check([points, queries])
        options |= {"radius": radius, "min_similarity": min_similarity, "max_neighbors": k}
        options |= {"where": _mask(where), "exclude_within": exclude_within}
        _within(points, queries, key, _queries_key(queries, queries_key), target, options, read, as_json=as_json)
        return
    assert k is not None
    if names_a_directory(output):
        _in_directory(points, queries, k, output, read, force=force, as_json=as_json, options=options)
        return
    target = _common.check_output(Path(output), (".npz", ".ibin", *SUFFIXES), inputs=(points, queries), force=force)
    check_writable(target)
    check_named(context, target, read)
    read.check([points, queries])
    started = time.perf_counter()
    base = read.read(points, key)
    asked = read.read_queries(queries, _queries_key(queries, queries_key), base)
    if target.suffix.lower() == ".ibin":
        if are_sparse(asked, base):
            raise Unsupported(
                f"{target}: is written chunk by chunk, which sparse rows do not support; name a .npz file"
            )
        try:
            with _common.warnings_as_lines(), recording("tonari search", asked.shape[0]) as record:
                writing.search_to_file(asked, base, k, target, resume=not force, overwrite=force, **options)
        except KeyboardInterrupt:
            _tell_what_is_kept(target, asked.shape[0], force=force)
            raise
        (record,) = record.parts  # for the whole file, including rows that earlier, interrupted runs have found
    else:
        with recording("search", asked.shape[0]) as record:
            filters = {"where": _mask(where), "exclude_within": exclude_within}
            options |= filters | {"ties": ties}
            found = searching.search(asked, base, k, **options)
        if target.suffix.lower() == ".npz":
            write_npz(target, found._asdict(), properties_of(filters))
        else:
            ids = read.names_of_rows(queries), read.names_of_rows(points)
            about = {"metric": metric, **({"filters": names} if names else {})}
            write_found(target, found.indices, found.distances, about, names=ids)
    sizes = {"rows": asked.shape[0], "points": base.shape[0], "k": k, "metric": metric}
    _emit(target, sizes, started, read, record, as_json=as_json)


def _mask(where: Path | None) -> Any:
    """Read the file of --where, a mask of the points that may be found."""
    if where is None:
        return None
    with open_regular(where) as file, parsing(where, size_of(where), "a bool array", "Save it with numpy.save."):
        mask = np.load(file, allow_pickle=False)
    if not isinstance(mask, np.ndarray) or mask.dtype != np.bool_:
        raise ValueError(f"{where}: expected a .npy file of a bool array, one value for each point")
    return mask


def _queries_key(queries: Path, given: str | None) -> str | None:
    """Return the key of the queries' array in a file; in HDF5 files, the default "train" would be the points."""
    if given is None and queries.suffix.lower() in HDF5_SUFFIXES:
        return "test"  # the queries in files of ann-benchmarks
    return given


def _within(
    points: Path,
    queries: Path,
    key: str | None,
    queries_key: str | None,
    target: Path,
    options: dict[str, Any],
    read: Inputs,
    *,
    as_json: bool,
) -> None:
    """Find all points within a radius of each query, and write them to a .npz file."""
    started = time.perf_counter()
    base = read.read(points, key)
    asked = read.read_queries(queries, queries_key, base)
    with recording("radius_search", asked.shape[0]) as record:
        found = radius.radius_search(asked, base, **options)
    filters = {name: options[name] for name in ("where", "exclude_within")}
    write_npz(target, found._asdict(), properties_of(filters))
    count = len(found.indices)
    facts = {"rows": asked.shape[0], "points": base.shape[0], "neighbours": count, "metric": options["metric"]}
    text = f"{count:,} neighbours of {asked.shape[0]:,} queries in {base.shape[0]:,} points"
    facts["record"] = record.as_dict()
    _common.emit_output(target, facts, text, started, as_json=as_json, inputs=read)


def _in_directory(
    points: Path,
    queries: Path,
    k: int,
    output: str,
    read: Inputs,
    *,
    force: bool,
    as_json: bool,
    options: dict[str, Any],
) -> None:
    context = click.get_current_context()
    refuse(
        context,
        ("key", "queries_key", "columns", "drop", "ids", *_options.COLUMNS),
        f"{output} is a directory, which does not support this; leave it out",
    )
    if options.pop("method") not in ("auto", "exact"):
        refuse(context, ("method",), f"{output} is a directory, expected 'exact' or 'auto'")
    if dtype_without_rows(queries) is not None:
        raise ValueError(
            f"{queries}: has no rows, expected at least one for a directory; name a file, such as found.npz"
        )
    started, folder = time.perf_counter(), Path(output)
    with told(folder, force=force):
        found = build_neighbors(points, queries, k, folder, resume=not force, overwrite=force, **options)
    state = read_state(folder)
    sizes = {"rows": len(found.indices), "points": state.manifest.source["n"], "k": k, "metric": options["metric"]}
    _emit(folder, sizes, started, read, state.record, as_json=as_json)


def _emit(
    output: Path, sizes: dict[str, Any], started: float, read: Inputs, record: Record | None, *, as_json: bool
) -> None:
    facts = sizes if record is None else sizes | {"record": record.as_dict()}
    text = f"{sizes['rows']:,} queries in {sizes['points']:,} points, k={sizes['k']}"
    _common.emit_output(output, facts, text, started, as_json=as_json, inputs=read)


def _tell_what_is_kept(output: Path, rows: int, *, force: bool) -> None:
    part, journal = kept(output)
    if journal is not None and journal.rows:
        how = "the same command without --force" if force else "the same command"
        done = f"{journal.rows:,} of {rows:,} queries"
        _common.say(f"tonari: {done} are in {part.name}; {how} resumes from there", err=True)
