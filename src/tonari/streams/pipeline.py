"""Run a chain of threads, each of which works one item ahead of the next; all of them end together."""

from __future__ import annotations

import contextlib
import functools
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from typing import Any, Generic, TypeVar

from tonari.core._native import DefaultFloats
from tonari.core.process.leaving import Helper, hold, was_stopped_at_exit
from tonari.core.trail import carried, current
from tonari.streams import tuning

T = TypeVar("T")


class Ended(Exception):
    """The exception that ends a thread when its pipeline is stopped."""


class Pipeline:
    """A chain of iterators, each on a thread of its own. A context manager, which ends the threads on exit.

    Examples
    --------
    >>> with Pipeline() as pipeline:
    ...     words = pipeline.prefetch(iter(["a", "b"]), "read")
    ...     print(list(pipeline.prefetch((word.upper() for word in words), "work")))
    ['A', 'B']
    """

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.stopped = False
        self.context = _place_of_caller()
        self._steps: list[PrefetchIterator[Any]] = []

    def prefetch(self, items: Iterable[T], name: str, *, foreign: bool = False) -> PrefetchIterator[T]:
        """Return an iterator whose items a new thread produces: the next one while the caller uses the last one.

        `foreign` is True if code of the library's user produces the items. Such code may hang, and cannot be
        interrupted, so a pipeline that is stopped waits only half a second for its thread.
        """
        step = PrefetchIterator(items, self, name, foreign=foreign)
        self._steps.append(step)
        return step

    def check(self) -> None:
        """Raise Ended if the pipeline has been stopped; steps call this between pieces of work."""
        if self.stopped:
            raise Ended

    def __enter__(self) -> Pipeline:
        return self

    def stop(self) -> None:
        """Ask the threads of all steps to end."""
        with self.changed:
            self.stopped = True
            self.changed.notify_all()

    def __exit__(self, *_: object) -> None:
        self.stop()
        for step in reversed(self._steps):
            step.thread.join(tuning.PATIENCE_SECONDS if step.foreign else None)


class PrefetchIterator(Generic[T]):
    """An iterator whose next item is produced while the last one is in use; at most one finished item is stored.

    When the pipeline is stopped, a step goes on until its code calls :meth:`Pipeline.check` or has no items left, so
    finished items still reach the next step.
    """

    def __init__(self, items: Iterable[T], pipeline: Pipeline, name: str, *, foreign: bool) -> None:
        self.foreign = foreign
        self._pipeline = pipeline
        self._ready: deque[T] = deque()
        self._ended = False
        self._error: BaseException | None = None
        record = current.get()
        work = functools.partial(self._run, items)
        run = work if record is None else carried(work, record)
        self.thread = Helper(run, pipeline.stop, name=f"tonari-{name}", daemon=True)
        self.thread.start()

    def _run(self, items: Iterable[T]) -> None:
        changed = self._pipeline.changed
        try:
            with self._pipeline.context(), DefaultFloats():
                source = iter(items)
                while True:
                    with changed:
                        while self._ready and not self._pipeline.stopped:
                            changed.wait()
                    item = next(source)
                    with changed:
                        self._ready.append(item)
                        changed.notify_all()
                    # drops the reference: otherwise the item would stay in memory while the next one is produced
                    del item
        except (StopIteration, Ended):
            pass
        except BaseException as error:
            self._error = error
        finally:
            with changed:
                self._ended = True
                changed.notify_all()

    def __iter__(self) -> Iterator[T]:
        return self

    def __next__(self) -> T:
        with self._pipeline.changed:
            while not self._ready and not self._ended:
                if self.foreign:
                    self._pipeline.check()
                self._pipeline.changed.wait()
            if self._ready:
                item = self._ready.popleft()
                self._pipeline.changed.notify_all()
                return item
        error, self._error = self._error, None
        if self._pipeline.stopped and was_stopped_at_exit():
            hold()
            # if this were a StopIteration, the stream would look complete
            error = error or Ended("the interpreter exits")
        raise StopIteration if error is None else error


def _place_of_caller() -> Callable[[], AbstractContextManager[Any]]:
    """Return a function that makes contexts to give a thread the caller's current torch device and CUDA stream."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_initialized():
        return contextlib.nullcontext
    stream = torch.cuda.current_stream()
    return lambda: torch.cuda.stream(stream)  # type: ignore[no-any-return, unused-ignore]
