"""Threads: how many, and how a list of tasks runs on them so that Ctrl-C stops within a moment.

Kernels release the GIL and take slices of at most a few tens of milliseconds; tasks ask `stopped()` between slices.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")

_WAKE_SECONDS = 0.1  # how often the waiting thread looks for Ctrl-C


class Stopped(Exception):
    """Raised inside a task when another task failed or the user pressed Ctrl-C."""


def default_threads() -> int:
    """Threads to use when nobody says: TONARI_NUM_THREADS, else the processors this process may run on.

    Examples
    --------
    >>> default_threads() >= 1
    True
    """
    asked = os.environ.get("TONARI_NUM_THREADS")
    if asked is not None:
        if not (asked.isascii() and asked.isdigit()) or int(asked) < 1:
            raise ValueError(f"TONARI_NUM_THREADS={asked!r}: expected a whole number of at least 1")
        return int(asked)
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = _cgroup_processors()
    return max(1, min(allowed, quota) if quota is not None else allowed)


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

        def work() -> None:
            try:
                for at, item in _shared(source, lock):
                    self.check()
                    results[at] = function(item)
            except BaseException as error:
                errors.append(error)
                self._stop.set()
                raise

        executor = ThreadPoolExecutor(min(self.threads, len(tasks)))
        try:
            pending = {executor.submit(work) for _ in range(min(self.threads, len(tasks)))}
            while pending:
                pending = wait(pending, timeout=_WAKE_SECONDS).not_done
            executor.shutdown()
        except BaseException:  # Ctrl-C here, on the caller's thread: the others end after their slice
            self._stop.set()
            executor.shutdown()
            raise
        for error in errors:
            if not isinstance(error, Stopped):
                raise error
        return [results[at] for at in range(len(tasks))]


def _shared(source: Iterator[tuple[int, T]], lock: threading.Lock) -> Iterator[tuple[int, T]]:
    """Draws from one iterator on many threads."""
    while True:
        with lock:
            item = next(source, None)
        if item is None:
            return
        yield item
