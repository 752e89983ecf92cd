"""Selections on the CPU: threads, divided rows, and queues for them."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tonari
from tests.helpers.checks import check_interrupt
from tests.helpers.select_checks import (
    assert_same,
    assert_selection,
    make,
    some_lengths,
)
from tonari.select import cpu, tuning
from tonari.select.registry import METHODS


@pytest.mark.parametrize("method", METHODS)
def test_threads_change_nothing(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "FIRST_VALUES", 1)  # chunks of one group of rows at first
    values = make("two_valued", 700, 90, "float32")
    lengths = some_lengths(700, 90)
    first = tonari.select_k(values, 12, method=method, lengths=lengths, threads=1)
    assert_selection(first, values, 12, lengths=lengths)
    for threads in (2, 3, 16):
        assert_same(tonari.select_k(values, 12, method=method, lengths=lengths, threads=threads), first)
    monkeypatch.setenv("TONARI_NUM_THREADS", "3")
    assert_same(tonari.select_k(values, 12, method=method, lengths=lengths), first)


@pytest.mark.parametrize("maker", ["random", "equal", "zeros", "infinities", "ascending"])
@pytest.mark.parametrize("method", METHODS)
def test_rows_in_parts(method: str, maker: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Few rows on many threads are divided; ties between the parts still go to the smaller index."""
    monkeypatch.setattr(tuning, "LEAST_PART", 50)
    calls: list[int] = []
    original = cpu._Job.by_parts
    monkeypatch.setattr(
        cpu._Job, "by_parts", lambda job, parts, *more: (calls.append(parts), original(job, parts, *more))[1]
    )
    for dtype in ("float32", "float64", "float16"):
        for rows, ordered in ((0, True), (1, True), (3, False), (18, True)):
            values = make(maker, rows, 1003, dtype)
            for lengths in (None, some_lengths(rows, 1003)):
                arguments: dict[str, Any] = {"largest": rows == 3, "lengths": lengths}
                found = tonari.select_k(values, 9, method=method, sorted=ordered, threads=4, **arguments)
                assert_selection(found, values, 9, sorted=ordered, **arguments)
    assert set(calls) == {2, 4}


def test_parts_find_nan(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "LEAST_PART", 50)
    values = make("random", 3, 1000, "float32")
    values[2, 10] = values[1, 990] = np.nan
    with pytest.raises(ValueError, match="row 1 has NaN in column 990"):
        tonari.select_k(values, 4, threads=5)
    assert_selection(tonari.select_k(values, 4, threads=5, nan="last"), values, 4, nan="last")
    values[:, 20:] = np.nan
    for lengths in (None, [1000, 30, 5]):
        found = tonari.select_k(values, 40, threads=3, nan="last", lengths=lengths)
        assert_selection(found, values, 40, nan="last", lengths=lengths)


def test_work_is_cut_to_the_threads() -> None:
    assert cpu._parts(rows=1, n=1 << 24, k=10, threads=2) == 2
    assert cpu._parts(rows=40, n=1 << 24, k=10, threads=8) == 3  # three groups of rows: nine tasks
    assert cpu._parts(rows=128, n=1 << 20, k=10, threads=8) == 1
    assert cpu._parts(rows=1, n=1 << 24, k=1 << 20, threads=8) == 2  # more would leave too much to select again
    assert cpu._parts(rows=1, n=1000, k=10, threads=8) == 1
    assert cpu._parts(rows=16, n=1 << 30, k=10, threads=1) == 64  # so that Ctrl-C is handled


def test_rows_are_shared_out_evenly() -> None:
    assert cpu._even(rows=17, quantum=16, threads=2) == 9
    assert cpu._even(rows=33, quantum=16, threads=2) == 9  # four chunks rather than three
    assert cpu._even(rows=3, quantum=16, threads=8) == 1
    assert cpu._even(rows=1000, quantum=16, threads=2) == 16
    assert cpu._even(rows=0, quantum=16, threads=2) == 16


def test_queue_of_rows() -> None:
    queue = cpu._RowQueue(100, 16, 2)
    assert queue.draw(0) == (0, 16)
    assert queue.draw(1000) == (16, 32)  # 84 left: a fair share of two threads is 21
    alone = cpu._RowQueue(100, 16, 1)
    assert alone.draw(50) == (0, 48)
    assert alone.draw(1000) == (48, 96)
    assert alone.draw(1000) == (96, 100)
    assert alone.draw(1000) is None
    queue.stop_at(-1)
    assert queue.draw(5) == (32, 48)
    queue.stop_at(40)
    queue.stop_at(7)
    queue.stop_at(20)
    assert queue.draw(5) is None
    assert queue.nan_row == 7


CHILD = """
import sys, threading, time
import numpy as np, tonari

values = np.broadcast_to(np.random.default_rng(0).random({n}, np.float32), ({rows}, {n}))
print("started", flush=True)
try:
    tonari.select_k(values, {k}, method={method!r}, threads={threads})
except KeyboardInterrupt:
    print("stopped", time.time(), flush=True)
else:
    print("finished", flush=True)
print("threads", threading.active_count(), flush=True)
"""


@pytest.mark.process
@pytest.mark.parametrize(
    ("rows", "n", "k", "method", "threads"),
    [(8_000_000, 4096, 2, "insertion", 1), (8_000_000, 4096, 2, "quick", 2), (2_000_000, 4096, 8, "heap", 2)],
)
def test_interrupt_stops_within_a_second(rows: int, n: int, k: int, method: str, threads: int) -> None:
    code = CHILD.format(rows=rows, n=n, k=k, method=method, threads=threads)
    check_interrupt(code, wait=0.3)


def test_no_thread_stays() -> None:
    before = set(threading.enumerate())
    tonari.select_k(make("random", 500, 600, "float32"), 5, threads=4)
    assert set(threading.enumerate()) == before


@pytest.mark.process
def test_selecting_on_the_cpu_brings_nothing_along() -> None:
    code = (
        "import sys, numpy, tonari; from tonari.select.registry import METHODS;"
        "[tonari.select_k(numpy.eye(3), 1, method=method) for method in ('auto', *METHODS)];"
        "print([name for name in ('torch', 'triton') if name in sys.modules])"
    )
    environment = os.environ | {"PYTHONPATH": str(Path(tonari.__file__).parents[1])}
    result = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert result.stdout == "[]\n"
