"""Threads: order, errors, stopping, and nothing left behind."""

from __future__ import annotations

import math
import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tonari.core.workers import Stopped, Workers, _cgroup_processors, default_threads


@pytest.fixture(autouse=True)
def _no_thread_stays() -> object:
    before = set(threading.enumerate())
    yield
    assert set(threading.enumerate()) == before


@pytest.mark.parametrize("threads", [1, 2, 7])
def test_results_are_in_the_order_of_the_items(threads: int) -> None:
    def slow_first(item: int) -> int:
        time.sleep(0.01 if item == 0 else 0)
        return item * item

    assert Workers(threads).map(slow_first, range(40)) == [item * item for item in range(40)]
    assert Workers(threads).map(slow_first, []) == []


def test_one_thread_is_the_callers_own() -> None:
    assert set(Workers(1).map(lambda _: threading.get_ident(), range(3))) == {threading.get_ident()}
    assert threading.get_ident() not in Workers(2).map(lambda _: threading.get_ident(), range(3))


def test_of_several_threads_none_is_the_callers() -> None:
    """It hears Ctrl-C, which would end a task anywhere, with a lock that others wait for."""
    assert threading.get_ident() not in Workers(2).map(lambda _: threading.get_ident(), range(50))


def test_tasks_run_side_by_side() -> None:
    meeting = threading.Barrier(3, timeout=10)
    assert sorted(Workers(3).map(lambda _: meeting.wait(), range(3))) == [0, 1, 2]  # one thread would break it


@pytest.mark.parametrize("threads", [1, 3])
def test_an_error_stops_the_rest(threads: int) -> None:
    started: list[int] = []
    workers = Workers(threads)

    def work(item: int) -> None:
        started.append(item)
        if item == 4:
            raise ZeroDivisionError("the fourth")
        time.sleep(0.001)

    with pytest.raises(ZeroDivisionError, match="the fourth"):
        workers.map(work, range(10_000))
    assert len(started) < 1000


def test_the_first_error_is_the_one_raised() -> None:
    second_failed = threading.Event()

    def work(item: int) -> None:
        if item == 1:
            second_failed.set()
            raise KeyError("first in time")
        second_failed.wait(10)
        time.sleep(0.3)
        raise IndexError("later")

    with pytest.raises(KeyError, match="first in time"):
        Workers(2).map(work, [0, 1])


def test_running_tasks_are_told_to_stop() -> None:
    workers = Workers(2)
    stopped = threading.Event()
    running = threading.Event()

    def work(item: int) -> None:
        if item == 1:
            running.wait(10)
            raise RuntimeError("enough")
        running.set()
        deadline = time.monotonic() + 10
        try:
            while time.monotonic() < deadline:
                workers.check()
                time.sleep(0.001)
        except Stopped:
            stopped.set()
            raise

    with pytest.raises(RuntimeError, match="enough"):
        workers.map(work, [0, 1])
    assert stopped.is_set()


@pytest.mark.parametrize("threads", [1, 2])
def test_stopped_from_outside(threads: int) -> None:
    workers = Workers(threads)

    def work(item: int) -> None:
        if item == 3:
            workers.stop()
        workers.check()

    with pytest.raises(Stopped):
        workers.map(work, range(100))


def test_check_is_silent_while_nothing_is_wrong() -> None:
    workers = Workers(2)
    workers.check()
    assert workers.map(lambda item: workers.check() or item, range(4)) == [0, 1, 2, 3]
    workers.check()


def test_an_interrupt_raised_in_a_task_comes_out() -> None:
    def work(item: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Workers(2).map(work, range(4))


@pytest.mark.parametrize("moment", ["start", "join"])
def test_no_thread_outlives_an_interrupt(moment: str, monkeypatch: pytest.MonkeyPatch) -> None:
    usual = getattr(threading.Thread, moment)
    calls: list[threading.Thread] = []

    def interrupted(self: threading.Thread) -> None:
        calls.append(self)
        if len(calls) == 2:
            if moment == "start":
                usual(self)
            raise KeyboardInterrupt
        usual(self)

    def work(item: int) -> None:
        time.sleep(0.05)

    monkeypatch.setattr(threading.Thread, moment, interrupted)
    with pytest.raises(KeyboardInterrupt):
        Workers(3).map(work, range(6))
    assert len(calls) == 2
    assert not set(calls).intersection(threading.enumerate())


def test_a_thread_that_never_began_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    caught: list[threading.Thread] = []

    def interrupted(self: threading.Thread) -> None:
        with threading._active_limbo_lock:
            threading._limbo[self] = self
        caught.append(self)
        raise KeyboardInterrupt

    monkeypatch.setattr(threading.Thread, "start", interrupted)
    begin = time.monotonic()
    try:
        with pytest.raises(KeyboardInterrupt):
            Workers(2).map(abs, range(4))
    finally:
        for thread in caught:
            del threading._limbo[thread]
    assert len(caught) == 1
    assert time.monotonic() - begin < 5


@pytest.fixture
def _interrupts_are_heard() -> Iterator[None]:
    """A shell's & has its commands ignore them."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("_interrupts_are_heard")
def test_an_interrupt_of_the_waiting_thread_stops_the_others() -> None:
    workers = Workers(2)
    meeting = threading.Barrier(2, timeout=10)
    stopped: list[int] = []

    def work(item: int) -> None:
        if meeting.wait() == 0:
            signal.raise_signal(signal.SIGINT)
        try:
            while True:
                workers.check()
                time.sleep(0.001)
        except Stopped:
            stopped.append(item)
            raise

    with pytest.raises(KeyboardInterrupt):
        workers.map(work, range(2))
    assert sorted(stopped) == [0, 1]


def test_threads_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TONARI_NUM_THREADS", "5")
    assert default_threads() == 5
    for text in ("0", "-1", "two", "1.5", "", " "):
        monkeypatch.setenv("TONARI_NUM_THREADS", text)
        with pytest.raises(ValueError, match=f"TONARI_NUM_THREADS={text!r}: expected a whole number of at least 1"):
            default_threads()
    monkeypatch.delenv("TONARI_NUM_THREADS")
    assert 1 <= default_threads() <= len(os.sched_getaffinity(0))


@pytest.mark.parametrize(
    ("seconds", "threads"), [(0.0, 1), (1e-4, 1), (1.9e-3, 1), (2e-3, 4), (1e-2, 20), (3.2e-2, 64), (math.inf, 64)]
)
def test_no_more_threads_than_the_work_is_worth(seconds: float, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TONARI_NUM_THREADS", raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(64)))
    monkeypatch.setattr("tonari.core.workers._cgroup_processors", lambda: None)
    assert default_threads(seconds) == threads
    monkeypatch.setenv("TONARI_NUM_THREADS", "5")  # asked for
    assert default_threads(seconds) == 5


def test_affinity_limits_the_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TONARI_NUM_THREADS", raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {3})
    assert default_threads() == 1


@pytest.mark.parametrize(
    ("text", "processors"),
    [
        ("max 100000\n", None),
        ("200000 100000\n", 2),
        ("150000 100000\n", 2),
        ("10000 100000\n", 1),
        ("nonsense\n", None),
    ],
)
def test_quota_of_a_container(text: str, processors: int | None, tmp_path: Path) -> None:
    (tmp_path / "cpu.max").write_text(text)
    assert _cgroup_processors(tmp_path) == processors
    assert _cgroup_processors(tmp_path / "elsewhere") is None
