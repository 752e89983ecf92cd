"""End the library's threads when the interpreter exits while they are running.

At exit CPython waits for all threads except daemon threads. During finalisation it cuts off a daemon thread as soon as
the thread acquires the GIL, and objects on the thread's stack are never released. Therefore the library stops its own
daemon threads before finalisation, and waits for them. (Threads that work for a daemon thread of the caller are daemon
threads too.) The library does not end daemon threads of the caller. These run until they are cut off
(native/bind/unlocked.hpp); if their work has been stopped, they block in :func:`hold`.

The exit handler is registered when tonari is imported, because a thread may make its first search during exit, when
CPython refuses new handlers.
"""

from __future__ import annotations

import atexit
import concurrent.futures.thread  # noqa: F401  registers itself, for pools in other modules
import signal
import sys
import threading
import time
from collections.abc import Callable

from tonari.core import _native, tuning

_begun = False


class Helper(threading.Thread):
    """A thread of the library, which the library can stop at exit.

    Parameters
    ----------
    work : callable
        The function that the thread runs.
    stop : callable
        A function that makes `work` return soon, and that any thread may call.
    name, daemon
        As for :class:`threading.Thread`.
    """

    def __init__(
        self, work: Callable[[], None], stop: Callable[[], None], *, name: str | None = None, daemon: bool | None = None
    ) -> None:
        super().__init__(target=work, name=name, daemon=daemon)
        self.stop = stop

    def start(self) -> None:
        """Start the thread; see :func:`start`."""
        start(self)


def start(*helpers: Helper) -> None:
    """Start threads; during exit, a daemon thread of the caller that wants to start threads blocks here.

    Ctrl-C takes effect only after the threads have started, because an interrupt inside Thread.start could leave a lock
    locked that the new thread waits for.
    """
    hold()
    usual = signal.getsignal(signal.SIGINT) if threading.current_thread() is threading.main_thread() else None
    heard: list[object] = []
    if callable(usual):
        signal.signal(signal.SIGINT, lambda *given: heard.append(given))
    try:
        for helper in helpers:
            threading.Thread.start(helper)
    finally:
        if callable(usual):
            signal.signal(signal.SIGINT, usual)
            if heard:
                signal.raise_signal(signal.SIGINT)


def hold() -> None:
    """During exit, block a daemon thread of the caller whose work was stopped, so that no error is raised in it."""
    if was_stopped_at_exit() and threading.current_thread().daemon:
        threading.Event().wait(tuning.HOLD_SECONDS)


def was_stopped_at_exit() -> bool:
    """Return whether the library has stopped the work of this caller's thread because the interpreter is exiting."""
    return _begun and not isinstance(threading.current_thread(), Helper)


def _daemon_helpers() -> list[Helper]:
    return [thread for thread in threading.enumerate() if isinstance(thread, Helper) and thread.daemon]


@atexit.register
def _leave() -> None:
    """Stop the library's daemon threads and wait for them; besides this thread, only daemon threads are left."""
    global _begun
    _begun = True
    until = time.monotonic() + tuning.EXIT_SECONDS
    while time.monotonic() < until and (helpers := _daemon_helpers()):
        for helper in helpers:
            helper.stop()
        time.sleep(tuning.LOOK_SECONDS)
    if len(sys._current_frames()) > 1:
        # CPython never releases objects in the frames of a thread that it cuts off, so they are not reported as leaks.
        _native.set_leak_warnings(False)
