"""Threads that pass chunks on."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator

import pytest

from tests.helpers.streaming import soon
from tonari.streams.pipeline import Pipeline


@pytest.fixture(autouse=True)
def _threads_end() -> Iterator[None]:
    before = set(threading.enumerate())  # other libraries keep thread pools, such as the compiler of torch.compile
    yield
    gc.collect()
    assert soon(lambda: not _begun(before)), threading.enumerate()


def _begun(before: set[threading.Thread]) -> list[str]:
    """Return threads that started since then, except tqdm's monitor and threads that Dask keeps."""
    begun = set(threading.enumerate()) - before
    return [each.name for each in begun if type(each).__name__ != "TMonitor" and not each.name.startswith("Dask-")]


def test_threads_of_a_flow_hand_on_what_is_finished_when_it_stops() -> None:
    made = threading.Event()

    def numbers() -> Iterator[int]:
        yield 1
        made.wait(10)
        yield 2
        pipeline.check()
        yield 3

    with Pipeline() as pipeline:
        kept = pipeline.prefetch(numbers(), "work")
        assert next(kept) == 1
        with pipeline.changed:
            pipeline.stopped = True
            pipeline.changed.notify_all()
        made.set()
        assert list(kept) == [2]
