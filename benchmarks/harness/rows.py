"""Rows of results: one schema for every suite and paper, in CSV files to which runs only append.

A row is one contestant on one case; a peer has its own rows. A contestant with several bars has a row for each. Values
that rows have in common are written once, in records before them:

    #run,commit=2b64339,suite=kdtree,device=cuda,machine=NVIDIA H100 80GB HBM3,versions=python=3.12.3 torch=2.11.0
    #case,date=2026-11-21T11:34Z,case=sift-d5,n=2000000,m=10000000,d=5,k=10,dtype=float32,data=sift,repeats=3
    who,seconds_median,seconds_min,seconds_max,ratio,extras.sort
    tonari kdtree,0.0378345,0.0372441,0.0385599,,true
    tonari exact,7.23581,7.2326,7.24072,191.249,

``#run`` is valid until the next one. ``#case`` is followed by the names of the columns that differ, and then by the
rows. An entry of an object is a separate column with both names; its value is JSON, or text that is not JSON.

Columns (empty where they do not apply):

====================  ==============================================================================================
``date``              minute in UTC (older rows: the day)
``commit``            of tonari, with ``+`` if tracked files differed
``suite``             suite or paper that measured the row
``case``              its case
``who``               contestant: ``tonari`` and the name of a method, or the peer
``device``            ``cpu`` or ``cuda``
``machine``           model of the processor or of the GPU
``gpus``              GPUs used
``isa``               instruction set of tonari's kernels on a CPU
``threads``           threads of each contestant on a CPU
``versions``          ``name=version`` of Python and of the libraries that matter
``figure``            figure or table of the paper to which the row belongs
``stage``             part of the work that was timed, if a case has several
``n, m, d, k``        points, queries, dimensions, neighbours; in a selection, n values in each of m rows
``metric, dtype``     metric, and type of the input
``data``              kind of data
``parameters``        arguments of the contestant in addition to its defaults: a JSON object
``prepared``          whether an index was built before the clock started
``scale``             factor of points and queries: 1 is the full size
``repeats``           timed rounds
``rows_timed``        queries that were timed, if the seconds were scaled from these to all
``seconds_median``    seconds of the whole case; ``seconds_min`` and ``seconds_max`` of its rounds
``recall``            measured recall at k; ``recall_low`` and ``recall_high`` are the ends of its 95 % interval
``peak_bytes``        peak memory beyond the input
``proof, proved``     the reference of the answer, and the number of compared rows
``ratio``             seconds of this contestant divided by those of tonari on the case, measured side by side
``bar_on``            the quantity that has a bar, or the peer whose seconds are divided by ours
``bar, value``        the bound, and the measured value
``passed``            whether the value meets the bar; empty if bars are not judged (another machine or size)
``note``              the reason why there are no seconds, or other remarks
``extras``            everything else that a suite measures: a JSON object
====================  ==============================================================================================
"""

from __future__ import annotations

import csv
import itertools
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).resolve().parents[1] / "results"
COMPARED = "compare"  # value of the column ``stage`` for comparisons of two commits

# Column -> the type of its values.
COLUMNS: dict[str, type] = {
    "date": str,
    "commit": str,
    "suite": str,
    "case": str,
    "who": str,
    "device": str,
    "machine": str,
    "gpus": int,
    "isa": str,
    "threads": int,
    "versions": str,
    "figure": str,
    "stage": str,
    "n": int,
    "m": int,
    "d": int,
    "k": int,
    "metric": str,
    "dtype": str,
    "data": str,
    "parameters": dict,
    "prepared": bool,
    "scale": float,
    "repeats": int,
    "rows_timed": int,
    "seconds_median": float,
    "seconds_min": float,
    "seconds_max": float,
    "recall": float,
    "recall_low": float,
    "recall_high": float,
    "peak_bytes": int,
    "proof": str,
    "proved": int,
    "ratio": float,
    "bar_on": str,
    "bar": float,
    "value": float,
    "passed": bool,
    "note": str,
    "extras": dict,
}
# Columns in which every row has a value.
REQUIRED = ("date", "commit", "suite", "case", "who", "device", "machine")
DEVICES = ("cpu", "cuda")

Row = dict[str, Any]


# --- files -------------------------------------------------------------------------------------------------------

_RUN, _CASE = "#run", "#case"
_OF_RUN = ("commit", "suite", "device", "machine", "gpus", "isa", "threads", "versions")
_OF_CASE = ("date", "case")
# Columns that are written with every row, even if they have the same value in all rows of a case.
_OWN = ("who", "seconds_median", "seconds_min", "seconds_max")

_Cells = dict[str, str]  # the texts of a row's cells, by column or column.entry; empty texts are left out


def read(path: Path) -> list[Row]:
    """Read the rows of a results file, every column with its type.

    Returns
    -------
    list of dict
        Every row has all of COLUMNS. An empty number or flag is None, an empty text is "", an empty object is {}.

    Raises
    ------
    ValueError
        The file has other columns, or a value is not of its column's type.
    """
    return [_parsed(path, number, cells) for number, cells in _lines(path) if cells] if path.exists() else []


def append(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Add rows to a results file; columns that a row lacks stay empty.

    Raises
    ------
    ValueError
        The file has other columns, or a row has an unknown column, lacks a required one or has a value of another
        type. Nothing is written then.
    """
    lines = [_line(row) for row in rows]
    last = [cells for _, cells in _lines(path) if cells][-1:] if path.exists() else []
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        for run, of_run in _groups(lines, _OF_RUN):
            if not last or _only(last[0], _OF_RUN) != run:
                writer.writerow((_RUN, *(f"{name}={text}" for name, text in run.items())))
            for _, block in _groups(of_run, _OF_CASE):
                _write_block(writer, block)
            last = of_run


def _write_block(writer: Any, block: Sequence[_Cells]) -> None:
    """Write the rows of one case, after a record of the fields that they share."""
    names = [name for name in _ordered({name for cells in block for name in cells}) if name not in _OF_RUN]
    shared = [name for name in names if name not in _OWN and len({cells.get(name) for cells in block}) == 1]
    own = [name for name in names if name not in shared]
    writer.writerow((_CASE, *(f"{name}={block[0][name]}" for name in shared)))
    writer.writerow(own)
    writer.writerows([cells.get(name, "") for name in own] for cells in block)


def keep(path: Path, kept: Sequence[bool]) -> None:
    """Keep the rows of a results file with True in `kept`, without changing their text, and drop the others.

    Raises
    ------
    ValueError
        The file has another number of rows than `kept` has flags; then nothing is written.
    """
    texts = path.read_text().splitlines(keepends=True)  # rows contain no line breaks
    rows = [number for number, cells in _lines(path) if cells]
    staying = dict(zip(rows, kept, strict=True))
    run: list[str] = []  # the last #run record, which is written before the next row that is kept
    case: list[str] = []
    written = []
    for number, text in enumerate(texts, 1):
        if text.startswith(_RUN):
            run, case = [text], []
        elif text.startswith(_CASE):
            case = [text]
        elif number not in staying:
            case.append(text)
        elif staying[number]:
            written += [*run, *case, text]
            run, case = [], []
    path.write_text("".join(written))


def _lines(path: Path) -> Iterator[tuple[int, _Cells]]:
    """Yield the line number and the cells of each line of a file; for a line that is not a row, no cells."""
    with path.open(newline="") as file:
        run: _Cells = {}
        case: _Cells = {}
        names: list[str] | None = []
        for number, record in enumerate(csv.reader(file), 1):
            if record[:1] == [_RUN]:
                run, case, names = _facts(path, record), {}, []
            elif record[:1] == [_CASE]:
                case, names = _facts(path, record), None
            elif names is None:
                _check_names(path, names := record)
            elif not names or not run:
                raise ValueError(
                    f"{path}, line {number}: expected {_RUN} and {_CASE} before the first row; move it away"
                )
            elif len(record) != len(names):
                raise ValueError(f"{path}, line {number}: {len(record)} values, expected {len(names)}")
            else:
                own = {name: text for name, text in zip(names, record, strict=True) if text}
                yield number, run | case | own
                continue
            yield number, {}


def _facts(path: Path, record: Sequence[str]) -> _Cells:
    facts = {name: text for name, _, text in (fact.partition("=") for fact in record[1:])}
    _check_names(path, facts)
    return facts


def _check_names(path: Path, names: Iterable[str]) -> None:
    different = sorted({name for name in names if name.partition(".")[0] not in COLUMNS})
    if different:
        raise ValueError(f"{path} has other columns than these rows (different: {different}); move it away")


def _only(cells: _Cells, names: Sequence[str]) -> _Cells:
    return {name: cells[name] for name in names if name in cells}


def _groups(lines: Iterable[_Cells], names: Sequence[str]) -> Iterator[tuple[_Cells, list[_Cells]]]:
    """Group successive rows that agree in these columns; yield the shared cells and the rows of each group."""
    for shared, group in itertools.groupby(lines, lambda cells: _only(cells, names)):
        yield shared, list(group)


def _ordered(names: Iterable[str]) -> list[str]:
    """Sort names of cells in the order of the columns; entries of the same column are sorted alphabetically."""
    columns = list(COLUMNS)
    return sorted(names, key=lambda name: (columns.index(name.partition(".")[0]), name.split(".")))


def _parsed(path: Path, number: int, cells: _Cells) -> Row:
    row: Row = {name: _value(kind, "") for name, kind in COLUMNS.items()}
    for name in _ordered(cells):
        column, *entry = name.split(".")
        try:
            if entry:
                _put(row[column], entry, cells[name])
            else:
                row[column] = _value(COLUMNS[column], cells[name])
        except ValueError as error:
            expected = COLUMNS[column].__name__
            raise ValueError(f"{path}, line {number}: {name} is {cells[name]!r}, expected {expected}") from error
    return row


def _put(into: Any, entry: Sequence[str], text: str) -> None:
    """Store the value of `text` in nested dictionaries, under the path `entry`."""
    if not isinstance(into, dict):
        raise ValueError("an entry of what is no object")
    if len(entry) > 1:
        _put(into.setdefault(entry[0], {}), entry[1:], text)
    else:
        into[entry[0]] = _entry_value(text)


def _entry_value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _value(kind: type, text: str) -> Any:
    if kind is str:
        return text
    if kind is dict:
        return {} if not text else _refuse(text)
    if not text:
        return None
    if kind is bool:
        return {"True": True, "False": False}[text] if text in ("True", "False") else _refuse(text)
    return kind(text)


def _refuse(text: str) -> Any:
    raise ValueError(f"no such value: {text}")


def _line(row: Mapping[str, Any]) -> _Cells:
    unknown = sorted(set(row) - set(COLUMNS))
    if unknown:
        raise ValueError(f"no such columns: {unknown}; what only one suite measures goes into extras")
    lacking = [name for name in REQUIRED if not row.get(name)]
    if lacking:
        raise ValueError(f"a row of {row.get('who')!r} on {row.get('case')!r} lacks {lacking}")
    if row["device"] not in DEVICES:
        raise ValueError(f"device is {row['device']!r}, expected one of {', '.join(DEVICES)}")
    cells: _Cells = {}
    for name, kind in COLUMNS.items():
        if kind is dict:
            for entry, value in (row.get(name) or {}).items():
                if value is not None:
                    cells |= _entries(f"{name}.{entry}", _plain(value))
        else:
            cells[name] = _text(name, kind, row.get(name))
    return {name: text for name, text in cells.items() if text}


def _entries(name: str, value: Any) -> _Cells:
    """Return the cells that store a value under a name: one cell or, for a dictionary, the cells of all its entries."""
    if isinstance(value, Mapping) and value and not any("." in key for key in value):
        return {path: text for key, inner in value.items() for path, text in _entries(f"{name}.{key}", inner).items()}
    if isinstance(value, str) and value.isprintable() and _entry_value(value) is value and value:
        return {name: value}
    return {name: json.dumps(value, sort_keys=True, separators=(",", ":"))}


def _text(name: str, kind: type, value: Any) -> str:
    if value is None:
        return ""
    if hasattr(value, "item"):  # a NumPy scalar
        value = value.item()
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    if kind is int and isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise ValueError(f"{name} is {value!r}, expected {kind.__name__}")
    return f"{value:.6g}" if kind is float else " ".join(value.split()) if kind is str else str(value)


def _plain(value: Any) -> Any:
    """Return an entry's value: a float is rounded to six digits, but not floats inside lists or dictionaries."""
    if hasattr(value, "item"):
        value = value.item()
    return float(f"{value:.6g}") if isinstance(value, float) else value


# --- using rows --------------------------------------------------------------------------------------------------


def newest(rows: Iterable[Row], *by: str) -> list[Row]:
    """Group rows by the columns `by`; return, for each group, the rows of its last run (one date and one machine)."""
    found = list(rows)
    last: dict[tuple[Any, ...], tuple[str, str]] = {}
    for row in found:
        key = tuple(row[name] for name in by)
        last[key] = max(last.get(key, ("", "")), (row["date"], row["machine"]))
    return [row for row in found if (row["date"], row["machine"]) == last[tuple(row[name] for name in by)]]


def merged(*parts: Row) -> Row:
    """Merge several dictionaries of columns into one; later values win, but the entries of all extras are kept."""
    whole: Row = {}
    for part in parts:
        whole |= part | {"extras": whole.get("extras", {}) | part.get("extras", {})}
    return whole


def spread(row: Mapping[str, Any]) -> float:
    """Return the seconds of the slowest round minus those of the fastest, divided by the median."""
    return float((row["seconds_max"] - row["seconds_min"]) / row["seconds_median"])


def settings(given: Mapping[str, Any]) -> str:
    """Return parameters as text: ``name=value name=value``."""
    return " ".join(f"{name}={value}" for name, value in given.items())


def verdict(row: Mapping[str, Any]) -> str:
    """Return the verdict of a row on its bar as text; "" without a bar."""
    if not row.get("bar_on"):
        return ""
    judged = {True: "met", False: "MISSED", None: "not judged"}[row.get("passed")]
    return f"{row['bar_on']} {row['value']:.4g}, bar {row['bar']:.4g}: {judged}"


def line(row: Mapping[str, Any]) -> str:
    """Return a row as a line of text: case, contestant, sizes, seconds, other measurements, verdict."""
    sizes = " ".join(f"{name}={row[name]}" for name in ("m", "n", "d", "k") if row.get(name))
    parts = [f"{row['case']:20} {row['who']:28}", sizes]
    if row.get("stage"):
        parts.append(str(row["stage"]))
    if row.get("parameters"):
        parts.append(settings(row["parameters"]))
    if row.get("seconds_median") is not None:
        sliced = "*" if row.get("rows_timed") else ""
        around = "" if row.get("seconds_min") is None else f" ±{spread(row):.0%}"
        parts.append(f"{duration(row['seconds_median'])}{sliced}{around}")
    if row.get("recall") is not None:
        parts.append(f"recall {row['recall']:.4f}")
    if row.get("ratio") is not None:
        parts.append(f"ratio {row['ratio']:.3g}")
    if row.get("peak_bytes") is not None:
        parts.append(f"{row['peak_bytes'] / 1e9:.3g} GB")
    parts += [_extra(name, value) for name, value in (row.get("extras") or {}).items() if value is not None]
    if row.get("note"):
        parts.append(str(row["note"]))
    if row.get("bar_on"):
        parts.append(f"| {verdict(row)}")
    return "  ".join(part for part in parts if part)


def _extra(name: str, value: Any) -> str:
    if isinstance(value, Mapping | list | tuple) or name.endswith(("_low", "_high")):
        return ""
    return f"{name} {value:.4g}" if isinstance(value, float) else f"{name} {value}"


def duration(seconds: float) -> str:
    """Return seconds with a suitable unit."""
    return f"{seconds * 1e3:.4g} ms" if seconds < 1 else f"{seconds:.4g} s"


def aligned(lines: Sequence[Sequence[str]]) -> str:
    """Return lines of cells as text, with columns padded to their widest cell."""
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )
