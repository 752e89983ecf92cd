"""Build a graph in a directory: begin or resume, run the stages of the route, and finish."""

from __future__ import annotations

import dataclasses
import logging
import os
import shutil
import time
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

from tonari.core.errors import BudgetExceeded
from tonari.core.process.callers import callers_level
from tonari.core.process.progress import Progress, ProgressLike
from tonari.core.process.workers import default_threads
from tonari.core.trail import Record, recording, unrecorded
from tonari.graph.files.directory import BUILDING, COMPLETE, MANIFEST, Manifest, columns_as_facts
from tonari.io._atomic import remove_unfinished, sync_directory
from tonari.metrics.recall import Recall
from tonari.metrics.transforms.change import Change
from tonari.nn_descent.report import DescentReport
from tonari.nn_descent.updates import GNND, PULL
from tonari.shards.directory.disk import Lock, check_own, full_disk_named, remove_graph
from tonari.shards.plan import ShardPlan
from tonari.shards.planning.planner import devices_for_shards, plan_build
from tonari.shards.planning.sizes import Sizes
from tonari.shards.routes.registry import ROUTES
from tonari.shards.source import Source
from tonari.shards.tasks import Job, Task, add_tasks, title_of

logger = logging.getLogger("tonari")
_BLOCK_BYTES = 512  # bytes in one unit of a file's st_blocks
STAGE_DONE = "%s: %d tasks in %.3g s"  # message after each stage: kind of task, number of tasks, duration
# a name within the command line's logger, which shows messages even without -v
plan_logger = logging.getLogger("tonari.plan")


class Executor(Protocol):
    """The interface of an executor, which runs the tasks of a build.

    Attributes
    ----------
    workers : int
        The number of tasks that run at the same time.
    """

    @property
    def workers(self) -> int: ...

    def first(self, count: int) -> Executor:
        """Return an executor that uses only the first `count` devices."""

    def run(self, job: Job, tasks: Sequence[Task], done: Callable[[Task], None]) -> None:
        """Run tasks in any order, and call `done` after each task; raise an error if a task fails for good."""


@dataclasses.dataclass(frozen=True)
class Request:
    """The checked arguments of a build."""

    source: Source
    k: int
    metric: str
    method: str
    recall: float | None
    seed: int
    devices: tuple[str, ...]
    threads: int | None
    memory: int | None
    queries: Source | None = None
    update: str | None = None
    may_take_fewer: bool = False  # whether the build may use only some of the executor's devices
    # the transformation of rows, for metrics that need one; `metric` then compares the transformed rows of the sources
    change: Change | None = None

    @property
    def facts(self) -> dict[str, Any]:
        """The arguments of the build that determine its result, in the form that the manifest stores."""
        facts = {name: getattr(self, name) for name in ("k", "metric", "method", "recall", "seed")}
        if self.change is not None:
            facts |= {"metric": self.change.metric} | columns_as_facts(self.change.weights, self.change.transform)
        return facts if self.update is None else facts | {"update": self.update}


def build(
    request: Request, folder: Path, executor: Executor, *, resume: bool, overwrite: bool, progress: ProgressLike
) -> None:
    """Build the graph of a source in a directory; see :func:`tonari.build_graph`."""
    if not folder.is_dir():
        folder.mkdir()
        sync_directory(folder.absolute().parent)
    started = time.perf_counter()
    with Lock(folder):
        manifest = begin(request, folder, resume=resume, overwrite=overwrite, workers=executor.workers)
        job = _job(request, folder, manifest)
        if manifest.state == COMPLETE:
            job.files.complete()  # an interruption may have prevented the renaming
            job.files.check_rows(manifest.rows, request.threads or default_threads(), COMPLETE)
            return
        plan_logger.info("plan:\n%s", job.plan)
        _check_room(job, job.plan.disk_bytes)
        job.files.begin(reserved=not job.plan.by_parts)
        with recording(title_of(manifest), manifest.shape[0]) as record:
            record.planned(job.plan.route, _reason(request), job.plan)
            rows = _run(job, _chosen(executor, request, job.plan, record), progress, record)
        _finish(job, manifest, rows, record, time.perf_counter() - started)


def begin(request: Request, folder: Path, *, resume: bool, overwrite: bool, workers: int) -> Manifest:
    """Return the manifest of a build to resume, or plan a new build and write its manifest.

    `workers` is the number of tasks that run at the same time.

    Raises
    ------
    FileExistsError
        The directory contains other files.
    ValueError
        The directory belongs to other points or another request.
    """
    facts = request.source.facts(), None if request.queries is None else request.queries.facts()
    remove_unfinished(folder, MANIFEST)
    try:
        manifest = Manifest.read(folder)
    except FileNotFoundError:
        foreign = sorted(name for name in os.listdir(folder) if name != "lock")
        if foreign:
            raise FileExistsError(
                f"{folder}: is not empty ({foreign[0]} and {len(foreign) - 1} more) and holds no graph; name another"
            ) from None
    else:
        if resume:
            check_own(folder)
        other = _other(manifest, request, facts)
        if other and not overwrite and (resume or manifest.state == COMPLETE):
            how = "overwrite=True" if manifest.state == COMPLETE else "resume=False"
            raise ValueError(f"{folder}: {other}; name another directory, or use {how} (--force)")
        if resume and not other:
            _check_memory(manifest, request, folder)
            return manifest
        remove_graph(folder)
    plan = plan_build(_sizes(request, workers), request.method, request.memory)
    method = "exact" if plan.is_exact else "nn-descent"
    made = Manifest(
        state=BUILDING,
        source=facts[0],
        queries=facts[1],
        request=request.facts,
        plan=plan.as_dict(),
        method=method,
    )
    with full_disk_named(folder):
        made.write(folder)
    return made


def _sizes(request: Request, workers: int) -> Sizes:
    m = None if request.queries is None else request.queries.n
    return Sizes(
        *(request.source, request.k, request.metric, request.recall, request.devices, request.threads, m, workers),
        update=request.update,
    )


def _other(manifest: Manifest, request: Request, facts: tuple[dict[str, Any], dict[str, Any] | None]) -> str:
    """Return a sentence that says how the build in a directory differs from the requested one; "" if they agree."""
    words = {"weights": "other weights", "transform": "another matrix"}
    words |= {"sample": "other points (their values differ)", "stamps": "files that have changed since"}
    points, queries = facts
    if (manifest.queries is None) != (queries is None):
        kinds = ("a graph", "neighbours of queries")
        held, asked = kinds if manifest.queries is None else reversed(kinds)
        return f"holds {held}, not {asked}"
    pairs = ((manifest.source, points), (manifest.queries or {}, queries or {}), (manifest.request, request.facts))
    for theirs, ours in pairs:
        for name in {**theirs, **ours}:
            if theirs.get(name) != ours.get(name):
                how = words.get(name, f"{name}={theirs.get(name)!r}, not {ours.get(name)!r}")
                held = "a graph" if queries is None else "a search"
                return f"holds {held} of {how}"
    if manifest.state == BUILDING and not manifest.resumable:
        held = "graph" if queries is None else "search"
        return f"holds an unfinished {held} of an earlier release, whose results would differ from those of this one"
    return ""


def _check_memory(manifest: Manifest, request: Request, folder: Path) -> None:
    """Raise BudgetExceeded if the plan of an unfinished build needs more memory than the caller allows now."""
    plan = ShardPlan.of_manifest(manifest.plan)
    needed = plan.device_bytes if request.devices else plan.host_bytes
    if manifest.state == BUILDING and request.memory is not None and request.memory < needed:
        raise BudgetExceeded(
            f"{folder}: was begun with a plan for {needed} bytes of memory, now it is {request.memory}: allow as much, "
            "or use resume=False (--force)"
        )


def _job(request: Request, folder: Path, manifest: Manifest) -> Job:
    plan = ShardPlan.of_manifest(manifest.plan)
    request.source.most_rows = plan.rows_read
    return Job(
        folder=folder,
        source=request.source,
        k=request.k,
        metric=request.metric,
        recall=request.recall if manifest.method != "exact" else None,
        seed=request.seed,
        threads=request.threads,
        memory=request.memory,
        plan=plan,
        queries=request.queries,
        update=request.update,
        change=request.change,
    )


def _check_room(job: Job, needed: int) -> None:
    """Raise OSError if the disk has less free space than `needed`, the build's peak use of disk space in bytes."""
    taken = sum(_room_of(path) for path in job.folder.rglob("*") if path.is_file())
    free = shutil.disk_usage(job.folder).free
    if free + taken < needed:
        raise OSError(
            f"{job.folder}: the build needs {needed} bytes of disk at its peak, {free} are free and {taken} are taken "
            "already: make room, or name a directory on a larger disk"
        )


def _room_of(path: Path) -> int:
    """Return the disk space that a file occupies, in bytes: less than its size if some rows are not written yet."""
    about = path.stat()
    return min(about.st_size, about.st_blocks * _BLOCK_BYTES) if hasattr(about, "st_blocks") else about.st_size


def _reason(request: Request) -> str:
    """Return the reason for the planned route; "" if the caller named the method."""
    if request.method != "auto":
        return ""
    return "auto is exact without a recall" if request.recall is None else "auto expects it to be the fastest"


def _chosen(executor: Executor, request: Request, plan: ShardPlan, record: Record) -> Executor:
    """Return the executor or, if fewer devices are expected to be as fast, an executor on fewer devices."""
    if not request.may_take_fewer or len(request.devices) < 2:
        return executor
    count, why = devices_for_shards(_sizes(request, executor.workers), plan)
    record.decided("devices", why)
    return executor.first(count)


def _run(job: Job, executor: Executor, progress: ProgressLike, record: Record) -> list[list[int]]:
    """Run all stages, add their tasks' records to `record`, and return the ranges of rows written, with checksums."""
    files, done_before = job.files, job.files.names_done()
    rows: list[list[int]] = []
    # number of tasks of each kind; `finished` counts those that an earlier run of this build had finished
    known: Counter[str] = Counter()
    finished: Counter[str] = Counter()
    threads = job.threads or default_threads()
    with Progress(progress, total=0, seconds=job.plan.seconds, label="graph", unit="row") as bar:
        for stage in ROUTES[job.plan.route].stages(files, job.plan):
            bar.extend(sum(task.work for task in stage.tasks))
            left = [task for task in stage.tasks if task.name not in done_before]
            before = [task for task in stage.tasks if task.name in done_before]
            files.check_rows([found for task in before if (found := files.done(task.name).rows)], threads)
            if before:
                bar.add(sum(task.work for task in before))
                finished.update(task.kind for task in before)
            if left:
                if stage.disk_bytes > job.plan.disk_bytes:  # the plan may have underestimated the disk space
                    _check_room(job, stage.disk_bytes)
                started = time.perf_counter()
                with unrecorded():  # each task writes a record of its own, even on another machine
                    executor.run(job, left, lambda task: bar.add(task.work))
                seconds = time.perf_counter() - started
                logger.info(STAGE_DONE, left[-1].kind, len(left), seconds)
            known.update(task.kind for task in stage.tasks)
            rows += [written for task in stage.tasks if (written := files.done(task.name).rows)]
            add_tasks(record, files, stage.tasks)
            files.drop_all(stage.drops, threads)
    for kind, count in finished.items():
        record.decided("resumed", f"{kind}: {count} of {known[kind]} were done")
    return rows


def _finish(job: Job, manifest: Manifest, rows: list[list[int]], record: Record, seconds: float) -> None:
    report = None
    if job.recall is not None:
        estimate = Recall(**job.files.done("recall").facts)
        update = job.update or PULL
        start = "random" if update == GNND else "clusters"
        report = DescentReport(job.recall, estimate, estimate.low >= job.recall, start, (), seconds, update)
        if not report.reached:
            warnings.warn(f"{job.folder}: {report}", stacklevel=callers_level())
    about = None if report is None else report.as_dict()
    with full_disk_named(job.folder):
        run = record.as_dict() | {"plan": None}  # the manifest already contains the plan
        dataclasses.replace(manifest, state=COMPLETE, rows=rows, report=about, record=run).write(job.folder)
    job.files.complete()
