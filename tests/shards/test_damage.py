"""Damaged, missing and exchanged files: a resumed build names them, and never gives a wrong graph."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tonari
from tests.helpers.checks import assert_same_neighbors
from tests.helpers.shards import (
    assert_exact,
    lists,
    small,
    small_points,
    stopped,
)
from tonari.io import FileFormatError
from tonari.shards.directory.done import sealed


@pytest.fixture
def points(tmp_path: Path) -> Path:
    return small_points(tmp_path)


def flip(path: Path, at: int = -3) -> None:
    content = bytearray(path.read_bytes())
    content[at] ^= 4
    path.write_bytes(content)


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-5])


def empty(path: Path) -> None:
    path.write_bytes(b"")


def swap(path: Path) -> None:
    """Exchange the contents with another file of the same kind and size, as a careless copy does."""
    others = [other for other in path.parent.iterdir() if other != path and other.suffix == path.suffix]
    other = next(o for o in sorted(others) if o.stat().st_size == path.stat().st_size)
    ours, theirs = path.read_bytes(), other.read_bytes()
    assert ours != theirs
    path.write_bytes(theirs)
    other.write_bytes(ours)


def overwrite(path: Path) -> None:
    path.write_text('{"parts": 3}')


def change_a_digit(path: Path) -> None:
    """Change a digit, so that the file is still a record of the same task, but another one."""
    text = path.read_text()
    at = text.index("]") - 1
    path.write_text(f"{text[:at]}{(int(text[at]) + 1) % 10}{text[at + 1 :]}")


PARTS = [
    ("clusters", "shard-000003", "members-000001"),
    ("clusters", "members-000001", "centres"),
    ("clusters", "rows-000001", "shard-000002-000000-indices"),
    ("clusters", "rows-000001", "shard-000002-000000-distances"),
    ("clusters", "recall", "truth-000000-indices"),
    ("ggm", "inner-000001", "graph-000002-000000-indices"),
    ("ggm", "pair-000000-000000-000001", "lists-000001-000000-distances"),
]


@pytest.mark.parametrize(
    ("method", "before", "part", "damage"),
    [
        pytest.param(*part, damage, marks=[] if damage is flip or part is PARTS[2] else [pytest.mark.full])
        for part in PARTS
        for damage in (flip, truncate, empty, swap)
    ],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_a_damaged_part(
    method: str,
    before: str,
    part: str,
    damage: Callable[[Path], None],
    points: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    out = tmp_path / "graph"
    stopped(points, out, method, before, monkeypatch)
    path = out / "parts" / f"{part}.npy"
    if damage is swap and part in ("centres", "members-000001"):
        damage = flip  # no other file has their size
    damage(path)
    with pytest.raises(FileFormatError, match=r"parts/\S+\.npy: is damaged, expected .* build anew with resume=False"):
        small(points, out, method)
    with pytest.raises(ValueError, match="not complete"):
        tonari.KNNGraph.open(out)
    assert_same_neighbors(*(lists(small(points, tmp_path / name, method, resume=False)) for name in ("graph", "new")))


@pytest.mark.parametrize(("method", "before", "part"), PARTS, ids=lambda value: str(value))
def test_a_missing_part(
    method: str, before: str, part: str, points: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "graph"
    stopped(points, out, method, before, monkeypatch)
    (out / "parts" / f"{part}.npy").unlink()
    with pytest.raises(FileNotFoundError, match=rf"parts/{part}\.npy"):
        small(points, out, method)


@pytest.mark.parametrize("damage", [truncate, empty, swap, overwrite, change_a_digit])
@pytest.mark.parametrize(
    ("method", "before", "record"),
    [
        ("exact", "rows-000003", "rows-000000"),
        ("clusters", "rows-000000", "members-000001"),
        ("ggm", "pair-000000-000000-000001", "graph-000000"),
    ],
)
def test_a_damaged_record(
    method: str,
    before: str,
    record: str,
    damage: Callable[[Path], None],
    points: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    out = tmp_path / "graph"
    stopped(points, out, method, before, monkeypatch)
    path = out / "done" / f"{record}.json"
    if damage is swap:
        path.write_bytes((out / "done" / f"{record[:-1]}2.json").read_bytes())
    else:
        damage(path)
    with pytest.raises(FileFormatError, match=rf"{record}.*\.json: is damaged .*; build anew with resume=False"):
        small(points, out, method)


HOSTILE: list[tuple[str, str, list[str | int], Any]] = [
    ("exact", "rows-000000", ["rows"], [0, 60, 1]),
    ("exact", "rows-000000", ["rows"], [0, 10**9, 1, 1]),
    ("exact", "rows-000000", ["rows"], [-1, 60, 1, 1]),
    ("exact", "rows-000000", ["rows"], "0123"),
    ("exact", "rows-000000", ["parts"], {"../../x": [1, 1]}),
    ("exact", "rows-000000", ["parts"], [["a", 1]]),
    ("exact", "rows-000000", ["facts"], {"ends": [0]}),
    ("exact", "rows-000000", ["more"], 1),
    ("exact", "rows-000000", ["record"], [1]),
    ("exact", "rows-000000", ["record", "rows"], -1),
    ("exact", "rows-000000", ["record", "steps"], [{"what": 1, "why": ""}]),
    ("clusters", "centres", ["facts", "shards"], 10**30 + 0.5),
    ("clusters", "centres", ["facts", "shards"], True),
    ("clusters", "centres", ["facts", "margin"], "wide"),
    ("clusters", "centres", ["facts", "covered"], -1),
    ("clusters", "centres", ["parts", "centres"], [1]),
    ("clusters", "members-000001", ["facts", "ends"], [0, 9, 3]),
    ("clusters", "members-000001", ["facts", "ends"], []),
    ("clusters", "members-000001", ["facts", "ends"], None),
    ("clusters", "members-000001", ["parts", "members-000001"], [10, 2**40]),
]


@pytest.mark.parametrize("method", ["exact", "clusters"])
def test_hostile_records_with_right_checksums(
    method: str, points: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, before = tmp_path / "graph", {"exact": "rows-000003", "clusters": "rows-000000"}[method]
    stopped(points, out, method, before, monkeypatch)
    for made_by, record, place, value in HOSTILE:
        if made_by != method:
            continue
        path = out / "done" / f"{record}.json"
        before_it = path.read_text()
        facts = json.loads(before_it)
        del facts["checksum"]
        inner = facts
        for step in place[:-1]:
            inner = inner[step]
        inner[place[-1]] = value
        path.write_text(json.dumps(sealed(facts)))
        with pytest.raises(FileFormatError, match=rf"{record}\.json: is damaged \(it.*; build anew with resume=False"):
            small(points, out, method)
        path.write_text(before_it)
    small(points, out, method)  # resumes where records are unchanged


@pytest.mark.parametrize("name", ["indices.npy", "distances.npy"])
@pytest.mark.parametrize("damage", [flip, truncate, empty, "missing"])
def test_damaged_rows_of_an_unfinished_graph(
    damage: Any, name: str, points: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "graph"
    stopped(points, out, "exact", 2, monkeypatch)
    path = out / f"{name}.part"
    if damage == "missing":
        path.unlink()
    elif damage is flip:
        flip(path, 300)
    else:
        damage(path)
    with pytest.raises(FileFormatError, match=rf"{name}\.part: rows 0 to 59 are damaged, .* resume=False"):
        small(points, out)


@pytest.mark.parametrize("name", ["indices.npy", "distances.npy"])
@pytest.mark.parametrize("damage", [flip, truncate, "missing"])
def test_a_damaged_complete_graph(damage: Any, name: str, points: Path, tmp_path: Path) -> None:
    out = tmp_path / "graph"
    small(points, out)
    if damage == "missing":
        (out / name).unlink()
    else:
        damage(out / name)
    with pytest.raises((FileFormatError, FileNotFoundError), match=name):
        small(points, out)
    assert_exact(small(points, out, resume=False), np.load(points), 4)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "Expecting value"),
        ("{", "Expecting property name"),
        ("[]", "found 2 bytes"),
        ('{"format": "other"}', "another format"),
        ('{"format": "tonari.graph", "version": 2}', "its format version is 2, this release reads 1"),
        ('{"format": "tonari.graph", "version": 1, "state": "building"}', "missing"),
    ],
)
def test_a_damaged_manifest(text: str, message: str, points: Path, tmp_path: Path) -> None:
    out = tmp_path / "graph"
    small(points, out)
    (out / "manifest.json").write_text(text)
    for call in (lambda: small(points, out), lambda: tonari.KNNGraph.open(out)):
        with pytest.raises(FileFormatError, match=rf"manifest\.json: .*{message}"):
            call()
