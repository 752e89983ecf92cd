"""The record of a finished task of a build: a file whose fields are checked when it is read."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tonari.core.trail import Record
from tonari.io import schema
from tonari.io._atomic import atomic
from tonari.io._common import FileFormatError, open_regular
from tonari.io.record import read_record
from tonari.shards.directory.disk import ANEW

_LONGEST = 16 << 20  # largest valid record of a task, in bytes

_NAME = re.compile("[a-z0-9-]+")  # a valid name of a part, which is also the name of its file
_ROWS = schema.list_of(schema.whole(0))
_SHARE = schema.real(0, 1)
# For each kind of task: the names of its facts, each with a function that tests the fact's value.
_FACTS: dict[str, dict[str, schema.Test]] = {
    "centres": {
        **dict.fromkeys(("covered", "largest"), _SHARE),
        **dict.fromkeys(("copies", "margin"), schema.real(0)),
        "shards": schema.whole(1),
    },
    "members": {"ends": schema.list_of(schema.whole(0))},
    "recall": {
        **dict.fromkeys(("by_index", "by_distance", "low", "high"), _SHARE),
        **dict.fromkeys(("rows", "k"), schema.whole(1)),
    },
}


def _any(_value: Any) -> bool:
    """Accept any value; for facts that are checked elsewhere."""
    return True


@dataclass(frozen=True)
class Done:
    """The record of a finished task.

    Attributes
    ----------
    parts : mapping
        Maps the name of each part to its size in bytes and its CRC-32.
    rows : list
        The range of rows of the result that the task wrote, and its checksums; empty if the task wrote no rows.
    facts : dict
        Results of the task that later tasks or the manifest need.
    record : Record, optional
        What the task tried and decided; None in directories of earlier releases.
    """

    parts: Mapping[str, list[int]] = field(default_factory=dict)
    rows: list[int] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)
    record: Record | None = None


def write_done(path: Path, task: str, done: Done) -> None:
    """Write the record of a task, with its checksum."""
    facts = {"task": task} | done.__dict__ | {"record": None if done.record is None else done.record.as_dict()}
    with atomic(path, follow=False) as file:
        file.write(json.dumps(sealed(facts)).encode())


def read_done(path: Path, task: str, n: int) -> Done:
    """Read the record of a finished task; n is the number of rows of the build's result.

    Raises
    ------
    tonari.io.FileFormatError
        The record is damaged, belongs to another task, or has a field that no task writes.
    """
    with open_regular(path) as file:
        text = file.read(_LONGEST)
    try:
        facts = json.loads(text)
        if facts.pop("task") != task:
            raise ValueError("it is of another task")
        checksum = facts.pop("checksum")
        if sealed({"task": task} | facts)["checksum"] != checksum:
            raise ValueError("its checksum is wrong")
        record = facts.pop("record", None)
        _check(task, facts, n)
        return Done(**facts, record=None if record is None else read_record(record))
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        message = f"{path}: is damaged ({error}); {ANEW}"
        raise FileFormatError(message, path, len(text), "the record of a task") from error


def sealed(facts: dict[str, Any]) -> dict[str, Any]:
    """Return a record with its own checksum."""
    return facts | {"checksum": zlib.crc32(json.dumps(facts, sort_keys=True).encode())}


def _check(task: str, record: dict[str, Any], n: int) -> None:
    """Raise ValueError if a field has a value that no task writes."""
    schema.check(record, {"parts": schema.map_of(schema.list_of(schema.whole(0))), "rows": _ROWS, "facts": _any})
    for name, part in record["parts"].items():
        if not (_NAME.fullmatch(name) and len(part) == 2 and part[1] < 1 << 32):
            raise ValueError(f"its parts have {name!r:.80}: {part!r:.80}")
    rows = record["rows"]
    if rows and not (len(rows) == 4 and rows[0] < rows[1] <= n and max(rows[2:]) < 1 << 32):
        raise ValueError(f"its rows are {rows!r:.80}")
    kind = task.partition("-")[0]
    schema.check(record["facts"], _FACTS.get(kind, {}), "facts")
    ends = record["facts"].get("ends", [0])
    if ends[:1] != [0] or ends != sorted(ends):
        raise ValueError(f"its facts ends are {ends!r:.80}")
