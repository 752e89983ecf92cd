"""Tasks in this process: retried if that may help, and written in order during other computations."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from tonari.shards import tuning
from tonari.shards.workers import local
from tonari.shards.workers.local import LocalExecutor
from tonari.streams.pipeline import Pipeline


@pytest.mark.parametrize(("error", "tries"), [(RuntimeError, tuning.TRIES), (MemoryError, tuning.TRIES), (OSError, 1)])
def test_only_what_another_try_may_mend_is_tried_again(error: type[Exception], tries: int) -> None:
    calls: list[int] = []

    def work() -> None:
        calls.append(len(calls))
        raise error("again")

    with pytest.raises(error, match="again"):
        local._tried(work)
    assert len(calls) == tries
    calls.clear()
    assert local._tried(lambda: calls.append(0) or len(calls)) == 1


def test_workers_are_the_devices_or_the_cpu() -> None:
    assert (LocalExecutor().devices, LocalExecutor().workers) == (("cpu",), 1)
    assert LocalExecutor(("cuda:0", "cuda:1")).workers == 2


@pytest.mark.parametrize("ahead", [True, False])
def test_all_that_is_put_is_written_in_order(ahead: bool) -> None:
    written: list[int] = []

    def write(given: Iterator[int]) -> None:
        written.extend(given)

    with Pipeline() as pipeline, local._Writer(pipeline, write, ahead=ahead) as writer:
        for number in range(20):
            writer.put(number)
    assert written == list(range(20))


def test_what_goes_wrong_in_writing_is_raised_by_the_next_that_is_put() -> None:
    before = threading.active_count()

    def write(given: Iterator[int]) -> None:
        next(given)
        raise OSError("disk full")

    def run() -> Any:
        with Pipeline() as pipeline, local._Writer(pipeline, write, ahead=True) as writer:
            for number in range(1000):
                writer.put(number)

    with pytest.raises(OSError, match="disk full"):
        run()
    assert threading.active_count() == before


def test_pieces_of_a_task_come_after_the_first() -> None:
    others = iter([("task", "b"), ("task", "c")])
    assert list(local._pieces(["a"], others)) == ["a", "b", "c"]
