"""The schema of results: written rows can be read, all else is refused, and all rows of the repository are valid."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.harness import rows

SHARED = {
    "date": "2026-01-02T03:04Z",
    "commit": "abcdef0",
    "suite": "kdtree",
    "case": "tiny",
    "who": "tonari",
    "device": "cpu",
    "machine": "a machine",
}
NAMES = (
    "bits",
    "consumers",
    "contraction",
    "exact_cpu",
    "exact_cuda",
    "filters",
    "kdtree",
    "nn_descent",
    "promises",
    "radius",
    "select",
    "shards",
    "small",
    "spanning",
    "sparse",
)


def written(path: Path, **columns: Any) -> rows.Row:
    """Write a row, and return it as read from the file."""
    rows.append(path, [SHARED | columns])
    return rows.read(path)[-1]


def test_every_type_comes_back(tmp_path: Path) -> None:
    given = {
        "n": np.int64(5),
        "scale": 1,
        "seconds_median": np.float64(0.123456789),
        "passed": np.bool_(False),
        "prepared": True,
        "parameters": {"recall": 0.99, "method": "auto", "sorted": True, "left out": None},
        "extras": {"rate": 1.23456789, "phi": [1.23456789, 2.0], "counters": {"merges": 3, "ratio": None}},
        "note": "two\nlines, and a comma",
        "peak_bytes": 12.0,
    }
    row = written(tmp_path / "new" / "results.csv", **given)
    assert list(row) == list(rows.COLUMNS)
    assert (row["n"], row["scale"], row["seconds_median"], row["peak_bytes"]) == (5, 1.0, 0.123457, 12)
    assert row["passed"] is False
    assert row["prepared"] is True
    assert row["parameters"] == {"recall": 0.99, "method": "auto", "sorted": True}
    assert row["extras"] == {"rate": 1.23457, "phi": [1.23456789, 2.0], "counters": {"merges": 3, "ratio": None}}
    assert row["note"] == "two lines, and a comma"
    assert (row["m"], row["recall"], row["isa"], row["ratio"]) == (None, None, "", None)


@pytest.mark.parametrize(
    "value",
    ["12", "null", "true", "", " padded ", "two\nlines", '"quoted"', "a, b", "#case", {}, {"a.b": {"c": 1}}, [{}]],
)
def test_entries_of_objects_keep_their_types(tmp_path: Path, value: Any) -> None:
    row = written(tmp_path / "results.csv", extras={"one": {"inner": value}, "two": value}, parameters={"z": 1, "a": 2})
    assert row["extras"] == {"one": {"inner": value}, "two": value}
    assert list(row["parameters"]) == ["a", "z"]


def test_files_only_grow(tmp_path: Path) -> None:
    path = tmp_path / "results.csv"
    rows.append(path, [SHARED, SHARED])
    before = path.read_text()
    rows.append(path, [SHARED])
    assert path.read_text().startswith(before)
    assert len(rows.read(path)) == 3
    assert rows.read(tmp_path / "absent.csv") == []


def test_what_rows_have_in_common_is_written_once(tmp_path: Path) -> None:
    path = tmp_path / "results.csv"
    given: list[dict[str, Any]] = [
        {"who": "tonari", "n": 5, "seconds_median": 1.0, "extras": {"leaves": {"most": 3}, "data": "plain"}},
        {"who": "peer", "n": 5, "seconds_median": 2.0, "extras": {"data": "plain"}},
        {"who": "tonari", "n": 6, "seconds_median": 1.0, "case": "small"},
        {"who": "tonari", "n": 7, "seconds_median": 1.0, "machine": "another"},
    ]
    rows.append(path, [SHARED | row for row in given[:2]])
    rows.append(path, [SHARED | row for row in given[2:]])
    text = """
        #run,commit=abcdef0,suite=kdtree,device=cpu,machine=a machine
        #case,date=2026-01-02T03:04Z,case=tiny,n=5,extras.data=plain
        who,seconds_median,extras.leaves.most
        tonari,1,3
        peer,2,
        #case,date=2026-01-02T03:04Z,case=small,n=6
        who,seconds_median
        tonari,1
        #run,commit=abcdef0,suite=kdtree,device=cpu,machine=another
        #case,date=2026-01-02T03:04Z,case=tiny,n=7
        who,seconds_median
        tonari,1
        """
    assert path.read_text() == textwrap.dedent(text[1:]).rstrip() + "\n"
    back = rows.read(path)
    assert [{name: row[name] or {} for name in one} for one, row in zip(given, back, strict=True)] == given
    assert [row["n"] for row in back] == [5, 5, 6, 7]


def test_records_go_with_their_last_row(tmp_path: Path) -> None:
    path = tmp_path / "results.csv"
    every = [SHARED | row for row in ({"n": 1}, {"n": 2}, {"n": 3, "case": "b"}, {"n": 4, "machine": "c"}, {"n": 5})]
    for dropped in range(1 << len(every)):
        path.unlink(missing_ok=True)
        rows.append(path, every)
        stays = [not dropped >> at & 1 for at in range(len(every))]
        expected = [row for row, kept in zip(rows.read(path), stays, strict=True) if kept]
        rows.keep(path, stays)
        assert rows.read(path) == expected
    assert path.read_text() == ""


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"gflops": 3.0}, r"no such columns: \['gflops'\]; what only one suite measures goes into extras"),
        ({"commit": ""}, r"lacks \['commit'\]"),
        ({"suite": None}, r"lacks \['suite'\]"),
        ({"device": "gpu"}, "device is 'gpu', expected one of cpu, cuda"),
        ({"n": "many"}, "n is 'many', expected int"),
        ({"n": 2.5}, "n is 2.5, expected int"),
        ({"n": True}, "n is True, expected int"),
        ({"recall": "1"}, "recall is '1', expected float"),
        ({"passed": 1}, "passed is 1, expected bool"),
        ({"note": 7}, "note is 7, expected str"),
    ],
)
def test_other_rows_are_refused_and_nothing_is_written(tmp_path: Path, columns: dict[str, Any], message: str) -> None:
    path = tmp_path / "results.csv"
    with pytest.raises(ValueError, match=message):
        rows.append(path, [SHARED, SHARED | columns])
    assert not path.exists()


RECORDS = "#run,commit=abcdef0\n#case,case=tiny\nwho,n\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("date,machine\n", "line 1: expected #run and #case before the first row"),
        ("#case,case=tiny\nwho\ntonari\n", "line 3: expected #run and #case before"),
        ("#run,commit=abcdef0\nwho\n", "line 2: expected #run and #case before"),
        ("#run,colour=red\n", r"has other columns than these rows \(different: \['colour'\]\)"),
        ("#run,commit=abcdef0\n#case\nwho,colour\n", r"has other columns than these rows \(different: \['colour'\]\)"),
        (RECORDS + "tonari,1,2\n", "line 4: 3 values, expected 2"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "results.csv"
    path.write_text(text)
    for use in (lambda: rows.append(path, [SHARED]), lambda: rows.read(path)):
        with pytest.raises(ValueError, match=message):
            use()
    assert path.read_text() == text


@pytest.mark.parametrize(
    ("column", "text"), [("n", "many"), ("passed", "yes"), ("extras", "[1]"), ("note.inner", "1"), ("n.inner", "1")]
)
def test_a_value_of_another_type_is_reported_with_its_line(tmp_path: Path, column: str, text: str) -> None:
    path = tmp_path / "results.csv"
    path.write_text(RECORDS.replace("n\n", f"{column}\n") + f"tonari,{text}\n")
    with pytest.raises(ValueError, match=f"line 4: {column} is '"):
        rows.read(path)


def test_newest_are_those_of_the_last_run() -> None:
    def row(date: str, machine: str, case: str) -> rows.Row:
        return {"date": date, "machine": machine, "case": case}

    old, new, other = row("1", "a", "x"), row("2", "a", "x"), row("1", "a", "y")
    assert rows.newest([old, new, new, other], "case") == [new, new, other]
    assert rows.newest([new, row("2", "b", "x")], "case") == [row("2", "b", "x")]  # of the same minute, on two machines


def test_a_row_is_a_line_of_text() -> None:
    measured = {"seconds_median": 0.002, "seconds_min": 0.001, "seconds_max": 0.003, "rows_timed": 20, "n": 400, "k": 5}
    judged = {"bar_on": "seconds", "bar": 0.001, "value": 0.002, "passed": False}
    more = {"extras": {"tflops": 12.345678, "phi": [1]}, "parameters": {"group": 4}, "recall": 1.0, "ratio": 2.5}
    text = rows.line(SHARED | measured | judged | more)
    for part in ("tiny", "n=400 k=5", "group=4", "2 ms* ±100%", "recall 1.0000", "ratio 2.5", "tflops 12.35"):
        assert part in text
    assert text.endswith("| seconds 0.002, bar 0.001: MISSED")
    assert "phi" not in text
    assert rows.line(SHARED | {"note": "not reached"}).endswith("not reached")
    assert rows.aligned([("a", "bb"), ("ccc", "d")]) == "a    bb\nccc  d"


@pytest.mark.parametrize("name", NAMES)
def test_the_rows_of_the_repository_fit(name: str) -> None:
    path = rows.RESULTS / f"{name}.csv"
    found = rows.read(path)
    assert found
    for number, row in enumerate(found, 2):
        where = f"{path.name}, line {number}"
        assert all(row[column] for column in rows.REQUIRED), where
        assert row["n"] is not None or row["case"] == "screen-attempts", where
        assert (row["device"] == "cpu") == (row["threads"] is not None), where
        # Seconds, a count or another quantity, or the reason why it is missing.
        measured = not row["extras"].keys().isdisjoint({"counters", "left", "ordered", "phi", "planned", "weights"})
        measured |= name == "promises" and row["recall"] is not None
        assert row["seconds_median"] is not None or row["note"] or measured, where
        judged = [row["bar_on"] != "", row["bar"] is not None, row["value"] is not None]
        assert all(judged) or not any(judged), where
        assert row["passed"] is None or all(judged), where


def test_the_repository_has_no_other_results() -> None:
    assert {path.stem for path in rows.RESULTS.glob("*")} == set(NAMES)
