"""tonari convert: convert points from one file format to another."""

from __future__ import annotations

import time
from pathlib import Path

import click
import numpy as np

from tonari import io
from tonari.cli import _common, _options
from tonari.cli._points import Inputs, inputs_option
from tonari.core.process.progress import Progress
from tonari.io._formats import TABLES
from tonari.io.converting import convert as copy_points
from tonari.io.neighbors.found import ARROW_SUFFIXES, check_writable

WRITTEN = (*io.SUFFIXES, *(suffix for suffix in TABLES if suffix in ARROW_SUFFIXES))
DTYPES = ("float16", "float32", "float64", "uint8", "int8", "int32")


@click.command()
@click.argument("source", metavar="IN", type=click.Path(path_type=Path))
@click.argument("target", metavar="OUT", type=click.Path(path_type=Path))
@click.option("--force", is_flag=True, help="Replace OUT if it exists.")
@click.option(
    "--dtype",
    type=click.Choice(DTYPES),
    help="Type of the values in OUT. Floats are rounded to it; a value out of its range is always refused. "
    "[default: as the suffix of OUT says, else as in IN]",
)
@click.option("--key", help="Name of the array or column in IN, if it is .npz, HDF5, Parquet or Arrow.")
@inputs_option
@_options.report_options
@click.pass_context
def convert(
    context: click.Context,
    source: Path,
    target: Path,
    force: bool,
    dtype: str | None,
    key: str | None,
    read: Inputs,
    progress: bool | None,
    as_json: bool,
) -> None:
    """Copy the points in IN to OUT; the suffixes name the formats.

    OUT is written block by block, and appears only when it is complete. Values do not change: a float64 value that
    float32 cannot represent, or 300 for a .u8bin file, is refused with its row and column. --dtype float32 rounds
    values instead.

    \b
    Example:
      tonari convert points.csv points.fbin --dtype float32
      tonari convert table.parquet points.npy --key embedding
      tonari convert table.csv points.npy --drop id
    """
    read.check([source])
    out = _common.check_output(target, WRITTEN, inputs=(source,), force=force)
    check_writable(out)
    wanted = None if dtype is None else np.dtype(dtype)
    started, last = time.perf_counter(), 0
    with Progress(progress, total=0, seconds=None, label="convert", unit="row") as shown:

        def done(rows: int, total: int) -> None:
            nonlocal last
            if not last:
                shown.extend(total)
            shown.add(rows - last)
            last = rows

        rows, width, kind, names = copy_points(source, out, key=key, dtype=wanted, done=done, choice=read.choice)
    read.note(source, rows, width, names)
    seconds, size = time.perf_counter() - started, out.stat().st_size
    facts = {
        "output": str(out),
        "rows": rows,
        "columns": width,
        "dtype": str(kind),
        "seconds": seconds,
        "bytes": size,
    }
    text = (
        f"{rows:,} rows of {width:,} {kind}, {rows / seconds:,.0f} rows a second\n"
        f"wrote {click.format_filename(out)}, {size:,} bytes"
    )
    _common.emit(facts, text, as_json=as_json, inputs=read)
