"""The interpreter's exit while daemon threads are at work.

CPython waits for every thread but the daemons; those it cuts off while it finalises, where they next want its lock.
What they have on their stacks is never given back then. So threads of ours that are daemons, as all are that serve one
of the caller's, are stopped before that, and waited for. A daemon thread of the caller's is not ours to end: it goes on
until it is cut off (native/bind/unlocked.hpp), or waits where its work was stopped under it.
"""

from __future__ import annotations

import atexit
import sys
import threading
import time
from collections.abc import Callable

from tonari.core import _native

_PATIENCE_SECONDS = 1.0  # with our threads, which end as soon as after Ctrl-C; but for those in code of the caller's
_HOLD_SECONDS = 10.0  # no longer, since another thread may wait at exit for what a held one has locked
_LOOK_SECONDS = 0.001

_begun = False


class Helper(threading.Thread):
    """A thread of ours.

    Parameters
    ----------
    work : callable
        What it does.
    stop : callable
        Has it end in a moment; may be called from any thread.
    name, daemon
        As for a thread.
    """

    def __init__(
        self, work: Callable[[], None], stop: Callable[[], None], *, name: str | None = None, daemon: bool | None = None
    ) -> None:
        super().__init__(target=work, name=name, daemon=daemon)
        self.stop = stop

    def start(self) -> None:
        """Begin; at exit no more for a daemon thread of the caller's."""
        hold()
        super().start()


def hold() -> None:
    """At exit, keep a caller's daemon thread where it is: its work was stopped, which it is not to see as an error."""
    if was_stopped_at_exit() and threading.current_thread().daemon:
        threading.Event().wait(_HOLD_SECONDS)


def was_stopped_at_exit() -> bool:
    """Whether what was stopped under this thread, which is not one of ours, was stopped because of the exit."""
    return _begun and not isinstance(threading.current_thread(), Helper)


def _daemon_helpers() -> list[Helper]:
    return [thread for thread in threading.enumerate() if isinstance(thread, Helper) and thread.daemon]


@atexit.register
def _leave() -> None:
    """Stop our daemon threads; no thread but daemons and this one is left by now."""
    global _begun
    _begun = True
    until = time.monotonic() + _PATIENCE_SECONDS
    while time.monotonic() < until and (helpers := _daemon_helpers()):
        for helper in helpers:
            helper.stop()
        time.sleep(_LOOK_SECONDS)
    if len(sys._current_frames()) > 1:
        # Frames of a thread that is cut off keep what they refer to, by CPython's design. That is no leak to report.
        _native.set_leak_warnings(False)
