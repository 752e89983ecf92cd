"""The record of a call contains the steps of the call and its threads, and nothing is recorded unless requested."""

from __future__ import annotations

import functools
import json
import logging
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tonari
from tests.helpers import checks
from tonari.core import trail, tuning
from tonari.core.plan import Plan
from tonari.core.process.workers import Workers
from tonari.core.trail import Attempt, Choice, Record, recording

ROWS = checks.gaussian(600, 6)
HALVES = ROWS[:500], ROWS[500:]
PLAN = {"n": 9, "m": 3, "d": 2, "k": 1, "dtype": "float32", "metric": "l1", "method": "exact", "device": "cpu"}
NUMBERS = {"threads": 1, "packed_bytes": 1, "copied_bytes": 0, "working_bytes": 2, "output_bytes": 3, "seconds": 0.5}


def made() -> Record:
    """Make a record with a step of every kind."""
    with recording("search", 3, timed=True) as record:
        record.planned("exact", "nothing else fits", Plan(**PLAN, **NUMBERS, devices=(), isa="avx2"))  # type: ignore[arg-type]
        with trail.part("a sample", 2):
            record_of_part().tried("float32", 2, 2, 0.25)
        trail.decided("columns", "all 2")
        record.tried("int8", 3, 2, 0.001, "quick")
        record.tried("float32", 1, 1, None)
    return record


def record_of_part() -> Record:
    record = trail.current.get()
    assert record is not None
    return record


def test_steps_are_in_order_and_those_of_a_part_are_apart() -> None:
    record = made()
    assert [type(step) for step in record.steps] == [Record, Choice, Attempt, Attempt]
    assert (record.method, record.reason, record.plan.isa) == ("exact", "nothing else fits", "avx2")
    assert (record.proved, record.rows) == (3, 3)
    (part,) = record.parts
    assert (part.title, part.rows, part.proved, part.timed) == ("a sample", 2, 2, True)
    assert record.seconds >= part.seconds > 0


def test_passes_of_one_name_and_parts_of_one_title_are_added_up() -> None:
    with recording("search", 10) as record:
        record.tried("int8", 6, 5, 0.5, "first")
        record.tried("int8", 4, 4, 0.25, "second")
        record.tried("float32", 1, 1, 0.5)
        record.tried("float32", 1, 1, None)
        record.tried("round", 10, None, 0.5)
        record.tried("round", 10, None, 0.5)
        for rows in (2, 3):
            with trail.part("a sample", rows):
                record_of_part().tried("int8", rows, rows)
    first, second, third = record.attempts
    assert first == Attempt("int8", 10, 9, 0.75, "second")
    assert second == Attempt("float32", 2, 2, None)
    assert third == Attempt("round", 20, None, 1.0)
    assert [(part.rows, part.proved) for part in record.parts] == [(5, 5)]


def test_a_choice_is_recorded_once_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "tonari"), recording("search", 1) as record:
        trail.decided("look", "left out")
        trail.decided("look", "left out")
        trail.decided("look", "taken")
    assert record.choices == [Choice("look", "left out"), Choice("look", "taken")]
    assert caplog.messages == ["look: left out", "look: left out", "look: taken"]


def test_the_first_plan_is_that_of_the_call() -> None:
    record = made()
    record.planned("kdtree", "", Plan(**PLAN, **NUMBERS, devices=(), isa="generic"))  # type: ignore[arg-type]
    assert (record.method, record.plan.isa) == ("exact", "avx2")


def test_calls_within_a_call_are_parts_of_its_record() -> None:
    with recording("add", 9) as record:
        inner = [made(), made()]
        with trail.unrecorded():
            made()
    (part,) = record.parts
    assert (part.title, part.rows, part.proved, part.method) == ("search", 6, 6, "exact")
    assert part.attempts[0] == Attempt("int8", 6, 4, 0.002, "quick")
    assert part.choices == [Choice("columns", "all 2")]
    assert (part.parts[0].rows, part.parts[0].proved) == (4, 4)
    assert part.seconds == sum(one.seconds for one in inner) <= record.seconds
    assert [(one.rows, one.proved) for one in inner] == [(3, 3), (3, 3)]  # each record belongs to its own call


def test_very_many_choices_about_one_subject_are_not_all_recorded() -> None:
    with recording("search", 1) as record:
        for at in range(100):
            trail.decided("columns", f"{at}")
            trail.decided("rounds", "one")
    about = [choice.why for choice in record.choices if choice.what == "columns"]
    assert about == [*map(str, range(tuning.RECORDED_CHOICES)), "in other ways too, which are not recorded"]
    assert [choice.why for choice in record.choices if choice.what == "rounds"] == ["one"]


INDEX = functools.cache(lambda: tonari.Index(ROWS))
VERBS: dict[str, Callable[[Path], Any]] = {
    "search": lambda _: tonari.search(ROWS[:50], ROWS, 5),
    "search-where": lambda _: tonari.search(ROWS[:50], ROWS, 5, where=ROWS[:, 0] > 0),
    "search_to_file": lambda folder: tonari.search_to_file(ROWS[:50], ROWS, 5, folder / "found.ibin", chunk_rows=20),
    "knn_graph": lambda _: tonari.knn_graph(ROWS, 5),
    "merge": lambda _: tonari.merge(*(tonari.knn_graph(part, 5) for part in HALVES), *HALVES),
    "add": lambda _: tonari.knn_graph(HALVES[0], 5).add(*HALVES),
    "build_graph": lambda folder: tonari.build_graph(ROWS, 5, folder / "graph"),
    "build_neighbors": lambda folder: tonari.build_neighbors(ROWS, ROWS[:50], 5, folder / "found"),
    "radius_search": lambda _: tonari.radius_search(ROWS[:50], ROWS, 1.0),
    "radius_count": lambda _: tonari.radius_count(ROWS[:50], ROWS, 1.0),
    "radius_graph": lambda _: tonari.radius_graph(ROWS, 1.0),
    "radius_count-few": lambda _: tonari.radius_count(ROWS[:50], ROWS[:50], 1.0),
    "pairs": lambda _: tonari.pairs(ROWS, radius=1.0),
    "pairs-few": lambda _: tonari.pairs(ROWS[:50], radius=1.0),
    "mutual_reachability_tree": lambda _: tonari.mutual_reachability_tree(ROWS, min_samples=5),
    "Index.search": lambda _: INDEX().search(ROWS[:50], 5),
    "Index.search_chunks": lambda _: list(INDEX().search_chunks([ROWS[:20], ROWS[20:50]], 5)),
    "Index.radius_search": lambda _: INDEX().radius_search(ROWS[:50], 1.0),
    "Index.radius_chunks": lambda _: list(INDEX().radius_chunks([ROWS[:20], ROWS[20:50]], 1.0)),
}


def proved(record: Record) -> int:
    """Return the number of rows that the attempts of a record and of all its parts proved."""
    return record.proved + sum(map(proved, record.parts))


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_is_recorded_without_an_argument_of_its_own(verb: str, tmp_path: Path) -> None:
    for folder in (tmp_path / "first", tmp_path / "again"):
        folder.mkdir()
        with tonari.recording() as record:
            VERBS[verb](folder)
        assert proved(record) >= 50
        assert record.method or any(part.method or part.parts for part in record.parts)


def test_where_nobody_asks_there_is_no_record() -> None:
    assert trail.current.get() is None
    trail.decided("columns", "all")
    with trail.part("a sample", 2):
        assert trail.current.get() is None
    with pytest.raises(KeyError), recording("search", 1):
        raise KeyError
    assert trail.current.get() is None


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("keeps", [False, True])
def test_threads_of_a_call_belong_to_its_record(threads: int, keeps: bool) -> None:
    def task(at: int) -> None:
        record_of_part().tried("task", 1, 1)

    with recording("search", 7) as record:
        workers = Workers(threads)
        if keeps:
            with workers:
                workers.map(task, range(3))
                workers.map(task, range(4))
        else:
            workers.map(task, range(7))
    assert record.attempts == [Attempt("task", 7, 7)]


def test_threads_that_are_kept_belong_to_no_call_that_is_over() -> None:
    seen: list[Record | None] = []
    with Workers(2) as workers:
        with recording("search", 1):
            workers.map(lambda _: None, range(2))
        workers.map(lambda _: seen.append(trail.current.get()), range(2))
    assert seen == [None, None]


def test_two_calls_at_once_have_a_record_each() -> None:
    both, records = threading.Barrier(2), dict[str, Record]()

    def call(name: str) -> None:
        with recording(name, 2) as record:
            both.wait(10)
            Workers(2).map(lambda _: record_of_part().tried(name, 1, 1), range(2))
            both.wait(10)
        records[name] = record

    threads = [threading.Thread(target=call, args=(name,)) for name in ("first", "second")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert {name: record.attempts for name, record in records.items()} == {
        name: [Attempt(name, 2, 2)] for name in ("first", "second")
    }


def test_it_reads_as_lines_and_is_plain_for_json() -> None:
    record = made()
    record.seconds, record.parts[0].seconds = 2.0, 0.5
    assert str(record).splitlines() == [
        "search: 3 rows by exact (nothing else fits), 2 s",
        "  a sample: 2 rows, 500 ms",
        "    float32: 2 of 2 rows proved, 250 ms",
        "  columns: all 2",
        "  int8: 2 of 3 rows proved, 1 ms, quick",
        "  float32: 1 of 1 rows proved",
    ]
    assert Record("recall", 0, seconds=0.5).lines() == ["recall, 500 ms"]
    facts = json.loads(json.dumps(record.as_dict()))
    assert (facts["title"], facts["rows"], facts["method"]) == ("search", 3, "exact")
    assert facts["steps"][0]["steps"][0]["name"] == "float32"
    assert facts["steps"][1] == {"what": "columns", "why": "all 2"}
    assert facts["steps"][2] == {"name": "int8", "rows": 3, "proved": 2, "seconds": 0.001, "note": "quick"}
