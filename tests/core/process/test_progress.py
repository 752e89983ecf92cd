"""Progress: when a bar is shown, and the arguments of callbacks."""

from __future__ import annotations

import io
import sys
import threading

import pytest

from tonari.core import tuning
from tonari.core.process.progress import Progress, ProgressLike, Silent, counting


class Terminal(io.StringIO):
    """Standard error that is a terminal."""

    def isatty(self) -> bool:
        return True


def shows(wanted: ProgressLike, seconds: float | None, terminal: bool, monkeypatch: pytest.MonkeyPatch) -> bool:
    monkeypatch.setattr(sys, "stderr", Terminal() if terminal else io.StringIO())
    with Progress(wanted, total=3, seconds=seconds, label="rows") as bar:
        bar.add(3)
        return bar._bar is not None


@pytest.mark.parametrize(
    ("wanted", "seconds", "terminal", "shown"),
    [
        (None, tuning.SHOW_FROM_SECONDS, True, False),
        (None, tuning.SHOW_FROM_SECONDS + 1, True, True),
        (None, tuning.SHOW_FROM_SECONDS + 1, False, False),
        (None, None, True, True),  # after two seconds
        (None, None, False, False),
        (True, 0.0, False, True),
        (False, 100.0, True, False),
    ],
)
def test_a_bar_is_shown_where_it_is_wanted_or_work_takes_long(
    wanted: ProgressLike, seconds: float | None, terminal: bool, shown: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert shows(wanted, seconds, terminal, monkeypatch) is shown


def test_a_callback_is_told_what_is_done_of_what() -> None:
    told: list[tuple[int, int]] = []
    with Progress(lambda *given: told.append(given), total=5, seconds=None, label="rows", done=1) as bar:
        bar.add(2)
        bar.extend(3)
        bar.add(5)
    assert told == [(3, 5), (8, 8)]


def test_no_work_of_threads_is_lost() -> None:
    bar = Progress(False, total=4000, seconds=None, label="rows")

    def work() -> None:
        for _ in range(1000):
            bar.add(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert bar.done == 4000


def test_what_a_callback_raises_comes_through() -> None:
    def stop(done: int, total: int) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), Progress(stop, total=1, seconds=None, label="rows") as bar:
        bar.add(1)


@pytest.mark.parametrize(
    ("wanted", "seconds", "silent"),
    [
        (None, tuning.SHOW_FROM_SECONDS, True),
        (None, tuning.SHOW_FROM_SECONDS + 1, False),
        (False, 100.0, True),
        (print, 0.0, False),
    ],
)
def test_short_work_that_nobody_watches_is_not_counted(wanted: ProgressLike, seconds: float, silent: bool) -> None:
    made = counting(wanted, total=1, seconds=seconds, label="rows")
    assert isinstance(made, Silent) is silent
