"""Threads: order, errors, stopping, and no threads left behind."""

from __future__ import annotations

import contextlib
import gc
import math
import os
import signal
import threading
import time
import weakref
from collections.abc import Iterator
from pathlib import Path

import pytest

from tonari.core import tuning
from tonari.core.process import workers as module
from tonari.core.process.workers import Stopped, Workers, _cgroup_processors, default_threads


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
    """The caller's thread receives Ctrl-C, which could end a task anywhere, with a lock that others wait for."""
    assert threading.get_ident() not in Workers(2).map(lambda _: threading.get_ident(), range(50))


def test_tasks_run_side_by_side() -> None:
    meeting = threading.Barrier(3, timeout=10)
    # with one thread, the barrier would break
    assert sorted(Workers(3).map(lambda _: meeting.wait(), range(3))) == [0, 1, 2]


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


@pytest.mark.parametrize(("moment", "kept"), [("start", False), ("join", False), ("start", True)])
def test_no_thread_outlives_an_interrupt(moment: str, kept: bool, monkeypatch: pytest.MonkeyPatch) -> None:
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
    workers = Workers(3)
    with pytest.raises(KeyboardInterrupt), workers if kept else contextlib.nullcontext():
        workers.map(work, range(6))
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
    """A shell lets commands that it starts with & ignore interrupts."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("_interrupts_are_heard")
@pytest.mark.parametrize("kept", [False, True])
def test_an_interrupt_of_the_waiting_thread_stops_the_others(kept: bool) -> None:
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

    with workers if kept else contextlib.nullcontext():
        workers.map(abs, range(2))
        with pytest.raises(KeyboardInterrupt):
            workers.map(work, range(2))
    assert sorted(stopped) == [0, 1]


@pytest.mark.usefixtures("_interrupts_are_heard")
def test_an_interrupt_waits_until_a_thread_has_started(monkeypatch: pytest.MonkeyPatch) -> None:
    """Inside Thread.start it would be raised with a lock taken that the new thread waits for."""
    usual, started = threading.Event.wait, []

    def interrupted(self: threading.Event, timeout: float | None = None) -> bool:
        signal.raise_signal(signal.SIGINT)
        started.append(usual(self, timeout))
        return started[-1]

    monkeypatch.setattr(threading.Event, "wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        Workers(2).map(abs, range(2))
    assert started == [True, True]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


# ---------------------------------------------------------------- threads that are kept for later maps


def who(workers: Workers, count: int) -> set[threading.Thread]:
    """Return the threads that share `count` tasks; each thread takes one."""
    meeting = threading.Barrier(count, timeout=10)
    return set(workers.map(lambda _: meeting.wait() >= 0 and threading.current_thread(), range(count)))


def ended(threads: set[threading.Thread]) -> bool:
    """Return whether threads end by themselves."""
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        if not threads.intersection(threading.enumerate()):
            return True
        time.sleep(0.001)
    return False


def test_a_context_keeps_its_threads() -> None:
    with Workers(3) as workers:
        first = who(workers, 2)
        second = who(workers, 3)
        assert first < second
        assert who(workers, 3) == second
        assert who(workers, 2) < second
        assert len(second) == 3
        assert second < set(threading.enumerate())
    assert not second.intersection(threading.enumerate())
    with workers:
        assert not who(workers, 3) & second
    assert len(who(workers, 3)) == 3  # without a context


def test_results_of_maps_do_not_mix() -> None:
    with Workers(4) as workers:
        for size in range(60):
            assert workers.map(lambda item, size=size: (size, item), range(size)) == [(size, i) for i in range(size)]


def test_an_error_ends_a_context() -> None:
    workers = Workers(3)
    with pytest.raises(ZeroDivisionError), workers:
        workers.map(lambda item: 1 // item, [3, 2, 1, 0])
    with workers, pytest.raises(Stopped):
        workers.map(abs, range(3))


def test_an_error_between_maps_ends_a_context() -> None:
    kept: set[threading.Thread] = set()

    def fail() -> None:
        with Workers(2) as workers:
            kept.update(who(workers, 2))
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert len(kept) == 2
    assert not kept.intersection(threading.enumerate())


def test_a_map_in_a_task_has_threads_of_its_own() -> None:
    with Workers(2) as workers:
        inner = workers.map(lambda _: who(workers, 2), range(2))
        assert len(inner[0] | inner[1] | who(workers, 2)) == 6


def test_a_map_of_another_thread_has_threads_of_its_own() -> None:
    found: list[set[threading.Thread]] = []
    with Workers(2) as workers:
        kept = who(workers, 2)
        other = threading.Thread(target=lambda: found.append(who(workers, 2)))
        other.start()
        other.join()
        assert not kept & found[0]
        assert not found[0].intersection(threading.enumerate())
        assert who(workers, 2) == kept


def test_nothing_of_a_map_stays() -> None:
    class Item:
        pass

    with Workers(2) as workers:
        left = workers.map(weakref.ref, [Item(), Item()])
        gc.collect()
        assert [item() for item in left] == [None, None]


def test_idle_threads_leave(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C may interrupt the code that ends them."""
    monkeypatch.setattr(tuning, "IDLE_SECONDS", 0.01)
    workers = Workers(3)
    workers.__enter__()
    assert ended(who(workers, 3))
    for round_ in range(200):  # threads that are about to end
        time.sleep(0.01 + 1e-5 * (round_ % 50 - 25))
        assert workers.map(abs, [-1, -2, -3]) == [1, 2, 3]
    assert len(workers._kept) <= 3  # there is no list of all ended threads
    assert ended(set(workers._kept))


@pytest.mark.parametrize("at", [0, 2])
def test_an_interrupt_of_the_end_of_a_context(at: int, monkeypatch: pytest.MonkeyPatch) -> None:
    usual, calls = module._Thread.end, [0]

    def interrupted(self: module._Thread) -> None:
        calls[0] += 1
        if calls[0] == at + 1:
            raise KeyboardInterrupt
        usual(self)

    monkeypatch.setattr(module._Thread, "end", interrupted)
    with pytest.raises(KeyboardInterrupt), Workers(3) as workers:
        threads = who(workers, 3)
    assert not threads.intersection(threading.enumerate())


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
    monkeypatch.setattr("tonari.core.process.workers._cgroup_processors", lambda: None)
    assert default_threads(seconds) == threads
    monkeypatch.setenv("TONARI_NUM_THREADS", "5")  # requested
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
