"""Run tasks in this process: one after another on the CPU, and in parallel on several CUDA devices.

While one task is computed, a thread writes the previous task and, on a CUDA device, another thread reads the next.
"""

from __future__ import annotations

import functools
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from queue import Empty, SimpleQueue
from typing import Any

from tonari.core.process.leaving import Helper
from tonari.shards import tuning
from tonari.shards.routes.registry import step_of
from tonari.shards.tasks import Job, Task, Worker
from tonari.streams.pipeline import Ended, Pipeline

logger = logging.getLogger("tonari")

# Errors after which a task is tried again. All other errors would happen again: wrong data, a full disk, a missing
# file, a budget that is too small, or a defect in this package.
PASSING = (RuntimeError, MemoryError)


class LocalExecutor:
    """Runs tasks on the devices of this machine.

    Parameters
    ----------
    devices : sequence of str
        Empty for the CPU.
    """

    def __init__(self, devices: Sequence[str] = ()) -> None:
        self.devices = tuple(devices) or ("cpu",)

    @property
    def workers(self) -> int:
        return len(self.devices)

    def first(self, count: int) -> LocalExecutor:
        """Return an executor on the first `count` devices."""
        return LocalExecutor(self.devices[:count])

    def run(self, job: Job, tasks: Sequence[Task], done: Callable[[Task], None]) -> None:
        """Run tasks in any order; `done` is called after each task, from any thread.

        A task that fails is repeated, unless its error would recur. The error of its third attempt is raised.
        """
        todo: SimpleQueue[Task] = SimpleQueue()
        for task in tasks:
            todo.put(task)
        if len(self.devices) == 1:
            with Pipeline() as pipeline:
                _work(job, self.devices[0], todo, done, pipeline)
            return
        _on_all(job, self.devices, todo, done)


def _on_all(job: Job, devices: Sequence[str], todo: SimpleQueue[Task], done: Callable[[Task], None]) -> None:
    errors: list[BaseException] = []
    with Pipeline() as pipeline:

        def work(device: str) -> None:
            try:
                _work(job, device, todo, done, pipeline, len(threads))
            except Ended:
                pass
            except BaseException as error:
                errors.append(error)
                pipeline.stop()

        threads = [
            Helper(functools.partial(work, device), pipeline.stop, name=f"tonari-{device}", daemon=True)
            for device in devices[: max(1, todo.qsize())]
        ]
        for thread in threads:
            thread.start()
        try:
            for thread in threads:
                while thread.is_alive():
                    thread.join(tuning.WAKE_SECONDS)
        finally:
            pipeline.stop()
            for thread in threads:
                thread.join()
    if errors:
        raise errors[0]


def _work(
    job: Job, device: str, todo: SimpleQueue[Task], done: Callable[[Task], None], pipeline: Pipeline, workers: int = 1
) -> None:
    """Run tasks on a device until none is left."""

    def check(*_: int) -> None:
        pipeline.check()

    ahead = job.plan.reads_ahead
    with (
        Worker(job, device, check, workers=workers) as worker,
        _Writer(pipeline, functools.partial(_write_all, worker, done), ahead=ahead) as writer,
    ):
        read = _read(worker, todo, pipeline)
        for some in pipeline.prefetch(read, f"read-{device}", foreign=True) if ahead else read:
            while some:
                task, piece = some.popleft()
                pipeline.check()
                step, started = step_of(job, task), time.perf_counter()
                computed = _tried(functools.partial(worker.compute, step, task, piece))
                logger.debug("%s: computed in %.3g s", task.name, time.perf_counter() - started)
                del piece
                writer.put((task, computed))
                del computed


def _read(worker: Worker, todo: SimpleQueue[Task], pipeline: Pipeline) -> Iterator[deque[tuple[Task, Any]]]:
    """Read tasks, and yield queues of pairs (task, piece).

    A queue has several tasks with one piece each if their steps read them together; otherwise it has one piece.
    """
    while True:
        pipeline.check()
        tasks = _next_tasks(worker.job, todo)
        if not tasks:
            return
        worker.job.check_unchanged()
        started, step = time.perf_counter(), step_of(worker.job, tasks[0])
        if len(tasks) > 1 and step.together is not None:
            pieces = step.together(worker, [task.args for task in tasks])
            logger.debug("%s and %d more: read in %.3g s", tasks[0].name, len(tasks) - 1, time.perf_counter() - started)
            yield deque(zip(tasks, pieces, strict=True))
            del pieces
            continue
        for piece in step.read(worker, tasks[0].args):
            logger.debug("%s: read in %.3g s", tasks[0].name, time.perf_counter() - started)
            yield deque([(tasks[0], piece)])
            del piece
            pipeline.check()
            started = time.perf_counter()


def _next_tasks(job: Job, todo: SimpleQueue[Task]) -> list[Task]:
    """Take the next task from the queue or, if tasks of its kind are read together, up to `group` of them.

    `group` is a field of the plan. The result is empty if no task is left. A stage with tasks that are read together
    has tasks of one kind only.
    """
    tasks: list[Task] = []
    try:
        tasks.append(todo.get_nowait())
        if step_of(job, tasks[0]).together is not None:
            while len(tasks) < job.plan.group:
                tasks.append(todo.get_nowait())
    except Empty:
        pass
    return tasks


def _tried(work: Callable[[], Any]) -> Any:
    for left in reversed(range(tuning.TRIES)):
        try:
            return work()
        except PASSING:
            if not left:
                raise
    raise AssertionError


def _write_all(worker: Worker, done: Callable[[Task], None], computed: Iterator[tuple[Task, Any]]) -> None:
    """Write the computed pieces of tasks as they arrive, and finish each task."""
    for task, first in computed:
        pieces = _pieces([first], computed)
        del first  # drops the reference: otherwise the rows would stay in memory until the next task
        _finish(worker, task, pieces, done)


def _pieces(first: list[Any], others: Iterator[tuple[Task, Any]]) -> Iterator[Any]:
    """Yield the pieces of a task; pieces of later tasks may follow, which the caller must not take."""
    yield first.pop()
    for _, made in others:
        yield made
        del made


def _finish(worker: Worker, task: Task, computed: Iterator[Any], done: Callable[[Task], None]) -> None:
    started = time.perf_counter()
    worker.finish(task, step_of(worker.job, task).write(worker, task.args, computed))
    logger.debug("%s: written in %.3g s", task.name, time.perf_counter() - started)
    done(task)


class _Writer:
    """A thread that writes results while the caller computes further ones; leaving its context waits for the thread.

    Parameters
    ----------
    pipeline : Pipeline
        Stopped if the interpreter exits.
    write : callable(iterator)
        Consumes all items that are put.
    ahead : bool
        Whether an item may wait in a queue while the next one is computed. Otherwise `put` waits until it is taken.
    """

    def __init__(self, pipeline: Pipeline, write: Callable[[Iterator[Any]], None], *, ahead: bool) -> None:
        self._ahead = ahead
        self._changed = threading.Condition()
        self._waiting: deque[Any] = deque()
        self._asks = self._ended = self._dropped = False
        self._error: BaseException | None = None
        self._thread = Helper(functools.partial(self._run, write), pipeline.stop, name="tonari-write", daemon=True)
        self._thread.start()

    def put(self, made: Any) -> None:
        """Pass an item to the writer; raise the error that it met at an earlier item, if there was one."""
        with self._changed:
            while self._thread.is_alive() and (self._waiting or not (self._ahead or self._asks)):
                self._changed.wait(tuning.WAKE_SECONDS)
            self._raise()
            self._waiting.append(made)
            self._changed.notify_all()

    def _run(self, write: Callable[[Iterator[Any]], None]) -> None:
        try:
            write(self._given())
        except Ended:
            pass
        except BaseException as error:
            self._error = error
        finally:
            with self._changed:
                self._ended = True
                self._changed.notify_all()

    def _given(self) -> Iterator[Any]:
        while True:
            with self._changed:
                self._asks = True
                self._changed.notify_all()
                while not self._waiting and not self._ended:
                    self._changed.wait()
                self._asks = False
                if not self._waiting:
                    if self._dropped:
                        raise Ended
                    return
                made = self._waiting.popleft()
                self._changed.notify_all()
            yield made
            del made

    def _raise(self) -> None:
        if self._error is not None:
            error, self._error = self._error, None
            raise error

    def __enter__(self) -> _Writer:
        return self

    def __exit__(self, failed: object, *_: object) -> None:
        with self._changed:
            self._ended = True
            # even after an error, tasks whose pieces have all been computed are written
            self._dropped = failed is not None
            self._changed.notify_all()
        while self._thread.is_alive():
            self._thread.join(tuning.WAKE_SECONDS)
        if failed is None:
            self._raise()
