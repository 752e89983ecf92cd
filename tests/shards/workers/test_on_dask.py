"""Builds on a Dask cluster: the same bits, workers that die, tasks that fail, and refusals."""

from __future__ import annotations

import os
import pickle
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tonari
from tests.helpers import checks
from tests.helpers.command_line import as_json
from tests.helpers.dask_sources import WAITS_SECONDS, Points
from tests.helpers.shards import tight_memory
from tonari.shards.source import as_source
from tonari.shards.tasks import Task
from tonari.shards.workers import on_dask
from tonari.shards.workers.on_dask import DaskExecutor

distributed = pytest.importorskip("distributed", reason="the extra dask is not installed")

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(os.name == "nt", reason="signals of POSIX"),
]

N, D, K = 1500, 8, 5
RECALL = 0.9


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    """Start a cluster of two processes."""
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address="127.0.0.1:0", memory_limit=0
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Write a file of points."""
    np.save(tmp_path / "points.npy", checks.gaussian(N, D))
    (tmp_path / "notes").mkdir()
    return tmp_path / "points.npy"


def _build(path: Path, name: str, *, source: Any = None, method: str = "exact", **options: Any) -> tonari.KNNGraph:
    recall = None if method == "exact" else RECALL
    memory = tight_memory(path, K, method, recall=recall, shards=3 if method != "ggm" else 1)
    given: dict[str, Any] = {"method": method, "recall": recall, "threads": 1, "memory": memory} | options
    return tonari.build_graph(path if source is None else source, K, path.parent / name, **given)


def _same(found: tonari.KNNGraph, truth: tonari.KNNGraph) -> bool:
    return np.array_equal(found.indices, truth.indices) and np.array_equal(found.distances, truth.distances)


@pytest.mark.parametrize("method", ["exact", "clusters", pytest.param("ggm", marks=pytest.mark.full)])
def test_the_bits_are_those_of_the_local_executor(path: Path, client: Any, method: str) -> None:
    seen: list[tuple[int, int]] = []
    found = _build(
        path, "dask", method=method, executor=client, progress=lambda done, total: seen.append((done, total))
    )
    assert _same(found, _build(path, "local", method=method))
    assert seen[-1][0] == seen[-1][1] > 0


def test_tasks_run_on_the_workers_one_thread_each(path: Path, client: Any) -> None:
    held = client.run(lambda: on_dask._jobs.clear())
    assert len(held) == 2
    _build(path, "g", executor=client, threads=None)
    threads = client.run(lambda: [worker.job.threads for worker in on_dask._jobs.values()])
    assert [1] in threads.values()


def test_the_task_of_a_worker_that_dies_is_run_again(path: Path, client: Any) -> None:
    points = Points(path, path.parent / "notes", "dies")
    found = _build(path, "g", source=points, executor=client)
    assert points.seen() >= 1
    assert _same(found, _build(path, "local"))


@pytest.mark.full
def test_a_task_that_kills_every_worker_stops_the_build(path: Path, client: Any) -> None:
    points = Points(path, path.parent / "notes", "always dies")
    with pytest.raises(RuntimeError, match=r"task rows-\d+: every Dask worker that ran it died, .* is kept"):
        _build(path, "g", source=points, executor=client)
    assert points.seen() >= 3
    assert _same(_build(path, "g", source=points), _build(path, "local"))


def test_a_task_that_fails_three_times_stops_the_build(path: Path, client: Any) -> None:
    points = Points(path, path.parent / "notes", "fails")
    with pytest.raises(RuntimeError, match=r"task rows-\d+ failed 3 times .* RuntimeError: no rows .* is kept"):
        _build(path, "g", source=points, executor=client)
    assert as_json("info", str(path.parent / "g"))["extra"]["state"] == "building"
    assert _same(_build(path, "g", source=points), _build(path, "local"))


def test_what_another_try_cannot_mend_is_not_tried_again(path: Path, client: Any) -> None:
    points = Points(path, path.parent / "notes", "refuses")
    with pytest.raises(ValueError, match=r"no rows \d+ to \d+, ever"):
        _build(path, "g", source=points, executor=client)
    assert points.seen() <= len(as_source(path).facts())  # one for each task, and no second one


def test_what_is_done_before_a_failure_is_kept(path: Path, client: Any) -> None:
    done: list[int] = []

    def enough(now: int, total: int) -> None:
        done.append(now)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        _build(path, "g", executor=client, progress=enough)
    extra = as_json("info", str(path.parent / "g"))["extra"]
    assert 1 <= extra["tasks_done"] < extra["tasks_known"]
    assert _same(_build(path, "g", executor=client), _build(path, "local"))


def test_an_interruption_cancels_what_is_queued(path: Path, client: Any) -> None:
    points = Points(path, path.parent / "notes", "waits")

    def interrupt() -> None:
        until = time.monotonic() + 30
        while not points.seen() and time.monotonic() < until:
            time.sleep(0.01)
        if points.seen():
            os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        _build(path, "g", source=points, executor=client)
    assert time.monotonic() - started < WAITS_SECONDS / 2
    thread.join()
    until = time.monotonic() + 10
    while (left := client.run_on_scheduler(_unfinished)) and time.monotonic() < until:
        time.sleep(0.02)
    assert left == 0
    assert points.seen() <= 2  # one for each worker: queued tasks never ran
    (path.parent / "notes" / "go").touch()


def _unfinished(dask_scheduler: Any) -> int:
    return sum(task.state in ("waiting", "queued", "processing", "no-worker") for task in dask_scheduler.tasks.values())


def test_files_that_a_worker_cannot_see(path: Path, client: Any) -> None:
    """A worker that finds no manifest, another build's manifest, or no source raises an error."""
    with pytest.raises(
        FileNotFoundError, match=r"Dask worker tcp://.*: cannot read .*manifest.json .* by the same paths"
    ):
        _hide(path, client, "manifest")
    with pytest.raises(FileNotFoundError, match=r"Dask worker tcp://.*points.npy.* by the same paths"):
        _hide(path, client, "source")
    with pytest.raises(ValueError, match=r"Dask worker tcp://.* holds another build"):
        _hide(path, client, "other")


def _hide(path: Path, client: Any, what: str) -> None:
    """Run a task on a worker, after the files that it needs have been changed."""
    folder = path.parent / what
    given: list[Any] = []

    class Hiding(DaskExecutor):
        def run(self, job: Any, tasks: Any, done: Any) -> None:
            given.append((job, list(tasks)))
            raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tonari.api.shards.DaskExecutor", Hiding)
        with pytest.raises(KeyboardInterrupt):
            _build(path, what, executor=client)
    job, tasks = given[0]
    manifest = folder / "manifest.json"
    digest = on_dask._digest(folder)
    if what == "manifest":
        manifest.rename(folder / "away.json")
    elif what == "other":
        manifest.write_bytes(manifest.read_bytes() + b"\n")
    sent = on_dask.Sent(pickle.dumps(job), str(folder), digest, "cpu")
    if what == "source":
        path.rename(path.with_name("away.npy"))
    try:
        client.submit(on_dask._run_here, sent, tasks[0], pure=False).result()
    finally:
        if what == "source":
            path.with_name("away.npy").rename(path)
    assert not list((folder / "done").iterdir())


def test_a_build_that_another_one_replaced_writes_nothing(path: Path, client: Any) -> None:
    """The manifest is checked again after a task is computed."""
    _hidden: list[Any] = []

    class Replacing(DaskExecutor):
        def run(self, job: Any, tasks: Any, done: Any) -> None:
            manifest = job.folder / "manifest.json"
            task: Task = tasks[0]
            looked: list[str] = []

            def look() -> None:
                looked.append(on_dask._digest(job.folder))
                manifest.write_bytes(manifest.read_bytes() + b"\n")
                on_dask._check_current(on_dask.Sent(b"", str(job.folder), looked[0], "cpu"), "here")

            with pytest.raises(ValueError, match="another build"):
                on_dask.run_task(on_dask.Worker(job, "cpu"), task, look)
            assert not list((job.folder / "done").iterdir())
            _hidden.append(task)
            raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tonari.api.shards.DaskExecutor", Replacing)
        with pytest.raises(KeyboardInterrupt):
            _build(path, "g", executor=client)
    assert _hidden


def test_what_is_refused(path: Path, client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TypeError, match=r"source: is an array, which would travel to every Dask worker"):
        _build(path, "g", source=np.load(path), executor=client)
    with pytest.raises(TypeError, match=r"executor: expected 'local' or a dask.distributed.Client, got 'dask'"):
        _build(path, "g", executor="dask")
    with pytest.raises(ValueError, match=r"each worker uses one device"):
        DaskExecutor(client, ("cuda:0", "cuda:1"))
    with pytest.raises(ValueError, match=r"none of the Dask workers has the resource GPU"):
        DaskExecutor(client, ("cuda:0",))
    monkeypatch.setattr(on_dask, "_resources", lambda dask_scheduler: {"a": {"GPU": 1.0}})
    assert DaskExecutor(client, ("cuda:0",))._resources == {"GPU": 1}
    assert DaskExecutor(client)._resources is None

    class Asynchronous:
        asynchronous = True

    with pytest.raises(TypeError, match=r"got an asynchronous Client"):
        DaskExecutor(Asynchronous())
