"""Tasks of a build: units of work that are finished or lost as a whole, in three steps that overlap with other tasks.

    read      from the source and from parts of earlier tasks, in one piece or several
    compute   a piece, on a device
    write     parts and rows of the result from all pieces, each as soon as it is computed, and then the record that the
              task is done

The description of a task is a few numbers, so points are never sent through an executor. It may be repeated at any
time, and writes the same files.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tonari.core.errors import BudgetExceeded
from tonari.core.plan import Plan
from tonari.core.process.progress import ProgressLike
from tonari.core.process.workers import default_threads
from tonari.core.results.neighbors import Neighbors
from tonari.core.trail import Record, current, recording
from tonari.exact.cpu.across import plan_across, search_across
from tonari.graph.files.directory import GRAPH, Manifest, value_dtype
from tonari.methods.answer import checked
from tonari.methods.call import Call
from tonari.methods.places.place import Place, place_for
from tonari.methods.registry import method_for, search_method
from tonari.metrics import Metric, get_metric
from tonari.metrics.transforms.change import Change
from tonari.shards.directory.done import Done
from tonari.shards.directory.workspace import Workspace
from tonari.shards.loading import Arrived, Arriving, Loader, loader_for
from tonari.shards.plan import ShardPlan
from tonari.shards.source import Source


class Task(NamedTuple):
    """One task of a build.

    Attributes
    ----------
    name : str
        A name that is unique in the build; also the name of the task's record.
    kind : str
        A key of the route's steps.
    args : tuple of int
    work : int
        The task's share of the progress bar: its rows, times the relative work for a row.
    """

    name: str
    kind: str
    args: tuple[int, ...] = ()
    work: int = 0


class Step(NamedTuple):
    """The three steps of a kind of task: read, compute and write; see the module docstring.

    Attributes
    ----------
    read : callable(worker, args)
        Yields the pieces of a task.
    compute : callable(worker, args, piece)
    write : callable(worker, args, computed)
        Consumes all computed pieces, in order, from an iterator.
    together : callable(worker, list of args), optional
        Reads several tasks of one piece each in one pass over the source, and returns their pieces. The pieces have the
        same contents as the pieces of `read`.
    """

    read: Callable[[Worker, Any], Iterator[Any]]
    compute: Callable[[Worker, Any, Any], Any]
    write: Callable[[Worker, Any, Iterator[Any]], Done]
    together: Callable[[Worker, list[Any]], list[Any]] | None = None


def in_one_piece(
    read: Callable[[Worker, Any], Any],
    compute: Callable[[Worker, Any, Any], Any],
    write: Callable[[Worker, Any, Any], Done],
    together: Callable[[Worker, list[Any]], list[Any]] | None = None,
) -> Step:
    """Return the steps of a kind of task that is read, computed and written in one piece."""

    def pieces(worker: Worker, args: Any) -> Iterator[Any]:
        yield read(worker, args)

    return Step(pieces, compute, lambda worker, args, computed: write(worker, args, next(computed)), together)


class Stage(NamedTuple):
    """Tasks that may run at the same time; after them, parts that earlier tasks wrote are removed.

    Attributes
    ----------
    tasks : list of Task
    drops : tuple of str
        Names of parts.
    disk_bytes : int
        Peak disk space of the build, if it is known more precisely than when the plan was made; otherwise 0.
    """

    tasks: list[Task]
    drops: tuple[str, ...] = ()
    disk_bytes: int = 0


class Route(NamedTuple):
    """A route of a build: the steps of its tasks, and the stages that run them.

    Attributes
    ----------
    steps : dict
        The steps of each kind of task.
    stages : callable(files, plan)
        Yields the stages in order. A stage is requested when the previous one is done, and may depend on its results.
    """

    steps: dict[str, Step]
    stages: Callable[[Workspace, ShardPlan], Iterator[Stage]]


def title_of(manifest: Manifest) -> str:
    """Return the title of the record of a build."""
    return "build_graph" if manifest.kind == GRAPH else "build_neighbors"


def add_tasks(record: Record, files: Workspace, tasks: Iterable[Task]) -> None:
    """Add the records of finished tasks to the record of a build, as one entry for each kind of task."""
    for task in tasks:
        made = files.done(task.name).record
        if made is not None:
            record.part(made.title, 0).add(made)


@dataclass(frozen=True)
class Job:
    """The properties of a build that every worker knows.

    Attributes
    ----------
    recall : float, optional
        None for an exact graph.
    threads, memory : int, optional
        As for :func:`tonari.knn_graph`, for each worker.
    queries : Source, optional
        The queries whose neighbours are searched; None for a graph of the points.
    update : str, optional
        The update of NN-Descent that the caller named. All graphs of shards are then built by NN-Descent.
    change : Change, optional
        The change of rows that makes `metric` the requested metric; the sources return changed rows.
    """

    folder: Path
    source: Source
    k: int
    metric: str
    recall: float | None
    seed: int
    threads: int | None
    memory: int | None
    plan: ShardPlan
    queries: Source | None = None
    update: str | None = None
    change: Change | None = None

    @property
    def record(self) -> Metric:
        """The record of the metric."""
        return get_metric(self.metric)

    @property
    def target(self) -> float:
        """The target recall of a graph that may miss neighbours."""
        assert self.recall is not None
        return self.recall

    def check_unchanged(self) -> None:
        """Raise an error if the points or the queries have evidently changed since they were opened, or are gone."""
        self.source.check_unchanged()
        if self.queries is not None:
            self.queries.check_unchanged()

    @cached_property
    def files(self) -> Workspace:
        """The files of the build in its directory."""
        rows = self.source if self.queries is None else self.queries
        return Workspace(self.folder, rows.n, self.k, value_dtype(self.source.dtype), self.source.n, self.change)


class Worker:
    """The state of a device that runs tasks of a job: its loaders, and rows that several tasks use.

    Parameters
    ----------
    device : str
        "cpu" or "cuda:0" and so on.
    progress : None or callable(done, total)
        Called from time to time; may raise an error to stop the task.
    workers : int
        The number of workers that share the processors of this machine.

    Attributes
    ----------
    threads : int
        The threads for work in host memory.
    memory : int or None
        Bytes that a search or the graph of a shard may use; None for no limit.
    sampled : rows or None
        The rows of all samples on the device; the first task that finds true neighbours loads them.
    dealt_by : tuple or None
        The centres, their distances and the shards that rows are assigned to, on the device; the first task that
        assigns rows loads them.
    """

    def __init__(self, job: Job, device: str, progress: ProgressLike = False, *, workers: int = 1) -> None:
        self.job, self.device, self.progress = job, device, progress
        self.place: Place = place_for(device)
        self.sampled: Any = None
        self.dealt_by: Any = None
        self.threads = job.threads or max(1, default_threads() // workers)
        self._loaders: list[Loader] = []
        self._has_read = False
        self.records: dict[str, Record] = {}  # the tasks that are not yet done, by name
        # Without a budget, each search on the CPU chooses its own memory. `engine_bytes` does not include rows and
        # lists.
        self.memory = None if job.memory is None and device == "cpu" else job.plan.engine_bytes
        self.call = Call(
            metric=job.record, place=self.place, threads=job.threads, memory=self.memory, progress=progress
        )

    @cached_property
    def load(self) -> Loader:
        """The loader that reads rows of the source to the worker's device."""
        return self._loader(self.job.source)

    @cached_property
    def load_queries(self) -> Loader:
        """The loader of the rows whose neighbours are searched: queries, or the points of a graph."""
        return self.load if self.job.queries is None else self._loader(self.job.queries)

    def rows_at(self, ids: npt.NDArray[np.int64]) -> Arriving:
        """Start to read the rows whose ascending row numbers are `ids`; they arrive when their task is computed."""
        return self.load.at_later(ids) if self._stages() else Arrived(self.load.at(ids))

    def rows_of(self, parts: list[slice]) -> Arriving:
        """Start to read several ranges of rows; they arrive when their task is computed."""
        return self.load.ranges_later(parts) if self._stages() else Arrived(self.load.ranges(parts))

    def _stages(self) -> bool:
        """Return whether to read rows into page-locked memory: if the plan provides it, for all but the first rows."""
        first, self._has_read = not self._has_read, True
        return self.job.plan.staged_bytes > 0 and not first

    def _loader(self, rows: Source) -> Loader:
        made = loader_for(rows, self.job.metric, self.threads, self.device)
        self._loaders.append(made)
        return made

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        for loader in self._loaders:
            loader.close()

    def compute(self, step: Step, task: Task, piece: Any) -> Any:
        """Compute a piece of a task, and record the computation."""
        with recording(task.kind, 0) as record:
            made = step.compute(self, task.args, piece)
        self.records.setdefault(task.name, Record(task.kind, 0)).add(record)
        return made

    def finish(self, task: Task, done: Done) -> None:
        """Record that a task is done, together with the record of its computation."""
        self.job.files.finish(task.name, replace(done, record=self.records.pop(task.name, None)))

    def nearest(self, queries: Any, points: Any, k: int, *, self_join: bool = False) -> Neighbors:
        """Find the k exact nearest points of every query; in a self-join, no row is its own neighbour."""
        method = search_method("exact", self.place.device)
        plan = method.plan(self.call.problem(points, queries, k, self_join=self_join))
        _begun(plan, len(queries))
        return method.search_once(queries, points, plan, self_join=self_join, progress=self.progress)

    def across(self, rows: Any, boundary: int, known: Any) -> Neighbors:
        """Find, for each row of two slabs, the exact nearest rows in the other slab; see :func:`search_across`."""
        k = min(self.job.k, max(boundary, len(rows) - boundary))
        plan = plan_across(self.call.problem(rows, rows, k, self_join=True))
        _begun(plan, len(rows))
        return search_across(rows, boundary, plan, known=known, progress=self.progress)

    def graph(self, rows: Any, seed: int, recall: float) -> Neighbors:
        """Build the graph of a shard on the device of its rows: exactly if that is faster, else by NN-Descent.

        If the caller named an update, the graph is built by NN-Descent, unless memory is too short for it.
        """
        most = min(self.job.k, len(rows) - 1)
        problem = self.call.problem(rows, rows, most, self_join=True)
        exact, descent = (method_for(name, self.place.device) for name in ("exact", "nn-descent"))
        by_force, update = exact.plan(problem), self.job.update
        named: dict[str, Any] = _rounds_of(self.device) if update is None else {"update": update}
        try:
            plan = descent.plan(problem, recall=recall, seed=seed, **named)
        except BudgetExceeded:  # the shard has more rows than its estimate from the sample
            plan = None
        if plan is None:
            why = "NN-Descent has no memory for this many rows"
        else:
            why = f"expected: {by_force.seconds:.3g} s by 'exact', {plan.seconds:.3g} s by NN-Descent"
            why = why if update is None else f"update={update!r} is by NN-Descent"
        if plan is None or (update is None and by_force.seconds < plan.seconds):
            _begun(by_force, len(rows), why)
            made: Neighbors = exact.build_graph(rows, by_force, progress=self.progress).found
        else:
            _begun(plan, len(rows), why)
            made = descent.build_graph(rows, plan, progress=self.progress, patience=math.inf).found
        return checked(made, rows, rows, self.call.metric)


def _begun(plan: Plan, rows: int, reason: str = "") -> None:
    """Record that the current task begins a search or a graph: its plan, and its number of rows."""
    record = current.get()
    if record is not None:
        record.rows += rows
        record.planned(plan.method, reason, plan)


def _rounds_of(device: str) -> dict[str, int]:
    """Return plan settings for a shard's graph: on the CPU, its second round of NN-Descent is a light one."""
    return {"light_rounds": 2} if device == "cpu" else {}
