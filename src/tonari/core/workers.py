"""Threads: how many, and how a list of tasks runs on them so that Ctrl-C stops within a moment.

Kernels release the GIL and take slices of at most a few tens of milliseconds; tasks ask `stopped()` between slices.
"""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TypeVar

from tonari.core.leaving import Helper, hold

T = TypeVar("T")
R = TypeVar("R")

_WAKE_SECONDS = 0.1  # how often the waiting thread looks for Ctrl-C
_LEAVE_SECONDS = 0.001  # how often a stopped map looks whether its threads are gone
_BEGIN_SECONDS = 0.5  # how long it waits for one that may never begin
_WORTH_SHARING = 2e-3  # seconds of work: less is done by the time that threads have started and handed over
_WORTH_STARTING = 5e-4  # seconds of work that each thread should find


class Stopped(Exception):
    """Raised inside a task when another task failed or the user pressed Ctrl-C."""


def default_threads(seconds: float = math.inf) -> int:
    """Threads to use when nobody says: TONARI_NUM_THREADS, else the processors this process may run on.

    Parameters
    ----------
    seconds : float
        That one thread is expected to take. No more threads than that is worth, unless the environment says.

    Examples
    --------
    >>> default_threads() >= 1
    True
    >>> default_threads(seconds=1e-4)
    1
    """
    asked = os.environ.get("TONARI_NUM_THREADS")
    if asked is not None:
        if not (asked.isascii() and asked.isdigit()) or int(asked) < 1:
            raise ValueError(f"TONARI_NUM_THREADS={asked!r}: expected a whole number of at least 1")
        return int(asked)
    if seconds < _WORTH_SHARING:
        return 1
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = _cgroup_processors()
    most = max(1, min(allowed, quota) if quota is not None else allowed)
    return int(min(most, seconds / _WORTH_STARTING))


def _cgroup_processors(root: Path = Path("/sys/fs/cgroup")) -> int | None:
    """Processors that the container's quota pays for, rounded up; None without a quota."""
    try:
        quota, period = (root / "cpu.max").read_text().split()
    except (OSError, ValueError):  # not Linux, or cgroup v1, or no controller: then there is no quota to keep
        return None
    return None if quota == "max" else max(1, -(-int(quota) // int(period)))


class Workers:
    """Runs tasks on `threads` threads; with one thread, on the caller's own.

    Examples
    --------
    >>> Workers(2).map(lambda x: x * x, [1, 2, 3])
    [1, 4, 9]
    """

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self._stop = threading.Event()

    def check(self) -> None:
        """Raise Stopped if the work is to end; tasks call this between slices."""
        if self._stop.is_set():
            raise Stopped

    def stop(self) -> None:
        """Let tasks end at their next :meth:`check`."""
        self._stop.set()

    def map(self, function: Callable[[T], R], items: Iterable[T]) -> list[R]:
        """[function(item) for item in items], in order; the first error stops the rest and is raised."""
        tasks = list(items)
        if self.threads == 1 or len(tasks) <= 1:
            return [function(item) for item in tasks]
        source = iter(enumerate(tasks))
        lock = threading.Lock()
        results: dict[int, R] = {}
        errors: list[BaseException] = []  # in order of time
        ended: SimpleQueue[None] = SimpleQueue()

        def work() -> None:
            try:
                for at, item in _shared(source, lock):
                    self.check()
                    results[at] = function(item)
            except BaseException as error:  # raised again below, on the caller's thread
                errors.append(error)
                self._stop.set()
            finally:
                ended.put(None)

        threads = [Helper(work, self.stop) for _ in range(min(self.threads, len(tasks)))]
        try:
            for thread in threads:
                thread.start()
            for _ in threads:
                _take(ended)  # not Thread.join, which takes a thread for ended once Ctrl-C falls into it
            for thread in threads:
                thread.join()
        except BaseException:  # Ctrl-C here, on the caller's thread: the others end after their slice
            self._stop.set()
            _see_out(threads)
            raise
        for error in errors:
            if not isinstance(error, Stopped):
                raise error
        if errors:  # stopped from outside
            hold()
            raise errors[0]
        return [results[at] for at in range(len(tasks))]


def _take(ended: SimpleQueue[None]) -> None:
    """Wait for one thread's end, waking now and then: a signal may have reached another thread than this."""
    while True:
        try:
            return ended.get(timeout=_WAKE_SECONDS)
        except Empty:
            continue


def _see_out(threads: list[Helper]) -> None:
    """Wait until no thread is left: the interpreter's own list is true whatever an interrupt made of start and join.

    A thread without an identity was caught at its start; it may begin in a moment, or never.
    """
    patience = time.monotonic() + _BEGIN_SECONDS
    while left := set(threads).intersection(threading.enumerate()):
        if time.monotonic() > patience and all(thread.ident is None for thread in left):
            return
        time.sleep(_LEAVE_SECONDS)


def _shared(source: Iterator[tuple[int, T]], lock: threading.Lock) -> Iterator[tuple[int, T]]:
    """Draws from one iterator on many threads."""
    while True:
        with lock:
            item = next(source, None)
        if item is None:
            return
        yield item
