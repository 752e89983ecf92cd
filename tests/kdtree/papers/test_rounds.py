"""Totals of a search by rounds."""

from __future__ import annotations

import threading

import pytest

from tonari.kdtree.papers.rounds import Rounds


def test_totals_of_threads_are_added() -> None:
    made = Rounds(rounds=1)

    def work() -> None:
        for _ in range(500):
            made.add(rounds=1, compared=3, find_seconds=0.25)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert made == Rounds(rounds=2001, compared=6000, find_seconds=500.0)


def test_what_is_not_counted_is_refused() -> None:
    with pytest.raises(AttributeError):
        Rounds().add(leaves=1)
