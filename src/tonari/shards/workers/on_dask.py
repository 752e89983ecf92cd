"""Run tasks on the workers of a Dask cluster.

Workers receive only the job, which names the directory and the source, and tasks, which are a few numbers. The workers
read and write the same files as this process, by the same paths. Each runs one task at a time on its device, so the
memory budget applies to each worker.

Dask repeats the task of a worker that died. A worker that only seemed dead, or whose task was cancelled, may continue
to run. This does no harm: before it writes, it checks that the directory still belongs to its build, and then it writes
the same bytes as the repeated task.
"""

from __future__ import annotations

import dataclasses
import hashlib
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tonari.graph.files.directory import MANIFEST
from tonari.shards import tuning
from tonari.shards.routes.registry import run_task
from tonari.shards.tasks import Job, Task, Worker
from tonari.shards.workers.local import PASSING


class Sent(NamedTuple):
    """The data that are sent with every task of a build.

    Attributes
    ----------
    job : bytes
        The pickled job.
    manifest : str
        The digest of the manifest in the directory.
    device : str
        "cpu", or the CUDA device of each worker.
    """

    job: bytes
    folder: str
    manifest: str
    device: str


class DaskExecutor:
    """Runs tasks on the workers of a cluster.

    Parameters
    ----------
    client : dask.distributed.Client
    devices : sequence of str
        Empty for the CPU; otherwise one name, of the device that each worker uses. The workers must have the resource
        "GPU".

    Raises
    ------
    TypeError
        The client is asynchronous.
    ValueError
        Several devices, or no worker has the resource.
    """

    def __init__(self, client: Any, devices: Sequence[str] = ()) -> None:
        if client.asynchronous:
            raise TypeError("executor: got an asynchronous Client, expected one made with asynchronous=False")
        if len(devices) > 1:
            raise ValueError(
                f"device={list(devices)}: on a Dask cluster each worker uses one device, so name one that all have, "
                "such as 'cuda', and start a worker for each GPU"
            )
        self._client, self._device = client, devices[0] if devices else "cpu"
        self._resources = {"GPU": 1} if devices else None
        if devices:
            resources = client.run_on_scheduler(_resources).values()
            if resources and not any(found.get("GPU", 0) >= 1 for found in resources):
                raise ValueError(
                    "device: none of the Dask workers has the resource GPU; start one for each GPU with "
                    "dask worker --resources GPU=1"
                )

    @property
    def workers(self) -> int:
        return max(1, len(self._client.nthreads()))

    def first(self, count: int) -> DaskExecutor:
        """Return this executor, whose workers have one device each."""
        return self

    def run(self, job: Job, tasks: Sequence[Task], done: Callable[[Task], None]) -> None:
        """Run tasks in any order; `done` is called after each task, from this thread.

        A task that fails is repeated, unless its error would recur. The error of its third attempt is raised.
        """
        from distributed import as_completed
        from distributed.protocol.pickle import dumps

        sent = Sent(dumps(job), str(job.folder), _digest(job.folder), self._device)
        failed: Counter[str] = Counter()
        running = {self._submit(sent, task): task for task in tasks}
        try:
            arriving = as_completed(list(running))
            for future in arriving:
                task = running.pop(future)
                error = future.exception()
                if error is None:
                    done(task)
                    continue
                failed[task.name] += 1
                _raise_for_good(task, error, failed[task.name])
                again = self._submit(sent, task)
                running[again] = task
                arriving.add(again)
        finally:
            self._client.cancel(list(running))  # some remain only after an error or Ctrl-C

    def _submit(self, sent: Sent, task: Task) -> Any:
        return self._client.submit(_run_here, sent, task, pure=False, resources=self._resources)


def _resources(dask_scheduler: Any) -> dict[str, dict[str, float]]:
    return {address: dict(worker.resources) for address, worker in dask_scheduler.workers.items()}


def _digest(folder: Path) -> str:
    return hashlib.sha256((folder / MANIFEST).read_bytes()).hexdigest()


def _raise_for_good(task: Task, error: BaseException, failures: int) -> None:
    """Raise the error of a failed task, unless the task may succeed if it is repeated."""
    from distributed.scheduler import KilledWorker

    if isinstance(error, KilledWorker):
        raise RuntimeError(
            f"task {task.name}: every Dask worker that ran it died, the last was {error.last_worker.address} (short of "
            "memory? each needs the budget, beyond the interpreter); everything done so far is kept"
        ) from error
    if not isinstance(error, PASSING):
        raise error
    if failures == tuning.TRIES:
        raise RuntimeError(
            f"task {task.name} failed {failures} times on the Dask cluster, the last time with {type(error).__name__}: "
            f"{error}; everything done so far is kept"
        ) from error


# --- on the workers

# the worker that ran the latest job on each device, as {(job, device): worker}
_jobs: dict[tuple[bytes, str], Worker] = {}
_one_at_a_time = threading.Lock()


def _run_here(sent: Sent, task: Task) -> str:
    """Run a task in the process of a Dask worker."""
    from distributed import get_worker

    here = get_worker()
    key = here.get_current_task()

    def check(*_: int) -> None:
        known = here.state.tasks.get(key)
        if known is None or known.state == "cancelled":
            raise RuntimeError(f"task {task.name} was cancelled")

    with _one_at_a_time:
        check()
        worker = _worker_for(sent, here.state.nthreads, here.address)
        worker.progress = check
        return run_task(worker, task, lambda: _check_current(sent, here.address))


def _worker_for(sent: Sent, threads: int, address: str) -> Worker:
    from distributed.protocol.pickle import loads

    _check_current(sent, address)
    key = sent.job, sent.device
    if key not in _jobs:
        while _jobs:
            _jobs.popitem()[1].__exit__()
        try:
            job = loads(sent.job)
        except FileNotFoundError as error:
            raise FileNotFoundError(f"Dask worker {address}: {error}; {_SAME_PATHS}") from error
        if job.threads is None and sent.device == "cpu":
            job = dataclasses.replace(job, threads=threads)
        _jobs[key] = Worker(job, sent.device)
    return _jobs[key]


_SAME_PATHS = "all workers must see the source and the directory by the same paths"


def _check_current(sent: Sent, address: str) -> None:
    """Raise an error if the directory, judging by its manifest, no longer belongs to the build of the task."""
    try:
        found = _digest(Path(sent.folder))
    except OSError as error:
        message = f"Dask worker {address}: cannot read {sent.folder}/{MANIFEST} ({error.strerror}); {_SAME_PATHS}"
        raise type(error)(message) from error
    if found != sent.manifest:
        raise ValueError(f"Dask worker {address}: {sent.folder} holds another build than the one it works for")
