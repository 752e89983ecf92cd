"""Run tasks in this process: one after the other on the CPU, and on every CUDA device at the same time.

A thread writes the last task while one is computed; on a CUDA device another reads the next.
"""

from __future__ import annotations

import functools
import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from queue import Empty, SimpleQueue
from typing import Any

from tonari.core.leaving import Helper
from tonari.shards.routes import step_of
from tonari.shards.tasks import Job, Step, Task, Worker
from tonari.streams.pipeline import Ended, Pipeline

logger = logging.getLogger("tonari")

_WAKE_SECONDS = 0.1  # how often the waiting thread hears of Ctrl-C
TRIES = 3
# What a second try cannot mend: wrong data, a full disk, a file that is gone, a budget, and all that is a defect.
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

    def run(self, job: Job, tasks: Sequence[Task], done: Callable[[Task], None]) -> None:
        """Run tasks, in any order; `done` is called after each, from any thread.

        Raises the first error of a task that cannot be mended by trying again, or that came three times.
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
                    thread.join(_WAKE_SECONDS)
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

    with Worker(job, device, check, workers=workers) as worker, _Writer(pipeline) as writer:
        read = _read(worker, todo, pipeline)
        ahead = job.plan.reads_ahead
        for task, data in pipeline.prefetch(read, f"read-{device}", foreign=True) if ahead else read:
            pipeline.check()
            step, started = step_of(job, task), time.perf_counter()
            made = _tried(functools.partial(step.compute, worker, task.args, data))
            logger.debug("%s: computed in %.3g s", task.name, time.perf_counter() - started)
            del data
            writer.put(functools.partial(_finish, worker, task, step, made, done))
            del made


def _read(worker: Worker, todo: SimpleQueue[Task], pipeline: Pipeline) -> Iterator[tuple[Task, Any]]:
    while True:
        pipeline.check()
        try:
            task = todo.get_nowait()
        except Empty:
            return
        worker.job.check_unchanged()
        started = time.perf_counter()
        data = step_of(worker.job, task).read(worker, task.args)
        logger.debug("%s: read in %.3g s", task.name, time.perf_counter() - started)
        yield task, data
        del data


def _tried(work: Callable[[], Any]) -> Any:
    for left in reversed(range(TRIES)):
        try:
            return work()
        except PASSING:
            if not left:
                raise
    raise AssertionError


def _finish(worker: Worker, task: Task, step: Step, made: Any, done: Callable[[Task], None]) -> None:
    started = time.perf_counter()
    worker.job.files.finish(task.name, step.write(worker, task.args, made))
    logger.debug("%s: written in %.3g s", task.name, time.perf_counter() - started)
    done(task)


class _Writer:
    """A thread that writes one task while another is computed."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None

    def put(self, write: Callable[[], None]) -> None:
        """Write when the last one is written; raises what went wrong with it."""
        self.close()

        def run() -> None:
            try:
                write()
            except BaseException as error:
                self._error = error

        self._thread = Helper(run, self._pipeline.stop, name="tonari-write", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Wait for the last one; raises what went wrong with it."""
        self._wait()
        if self._error is not None:
            error, self._error = self._error, None
            raise error

    def _wait(self) -> None:
        while self._thread is not None and self._thread.is_alive():
            self._thread.join(_WAKE_SECONDS)
        self._thread = None

    def __enter__(self) -> _Writer:
        return self

    def __exit__(self, failed: object, *_: object) -> None:
        if failed is None:
            self.close()
        else:
            self._wait()  # what it writes is kept, and the directory is left only after that
