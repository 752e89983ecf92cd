"""Helpers for tests of graphs larger than memory: plans with many small shards, tight budgets, and builds."""

from __future__ import annotations

import dataclasses
import importlib
import math
import pickle
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tonari
from tests.helpers.checks import Array, assert_same_neighbors, assert_valid_neighbors
from tonari.core.errors import BudgetExceeded
from tonari.core.results.neighbors import Neighbors
from tonari.exact.cpu import across
from tonari.graph.knn_graph import KNNGraph
from tonari.metrics import METRICS, get_metric
from tonari.metrics.reference import brute
from tonari.shards import build, tuning
from tonari.shards.directory.workspace import Workspace
from tonari.shards.plan import ShardPlan
from tonari.shards.planning.planner import plan_build
from tonari.shards.planning.sizes import Sizes
from tonari.shards.routes.registry import run_task, step_of
from tonari.shards.source import as_source
from tonari.shards.tasks import Job, Task, Worker

ROUTES = ("exact", "clusters", "ggm")
# Metrics of each kind in the thin suite, all others in the full one.
MOST_METRICS = [
    name if name in ("euclidean", "inner_product", "l1") else pytest.param(name, marks=pytest.mark.full)
    for name in METRICS
]
_PLANNED = plan_build
api = importlib.import_module("tonari.api.shards")


def plans_of(
    rows: int, block: int | None = None, clusters: int | None = None, route: str | None = None, group: int = 2
) -> Callable[..., ShardPlan]:
    """Return a planner that ignores `memory` and makes shards of at most `rows` rows, which are handled in groups."""

    def planned(sizes: Sizes, method: str, memory: int | None) -> ShardPlan:
        made, n = _PLANNED(sizes, method, memory), sizes.source.n
        if route is not None:
            made = dataclasses.replace(made, route=route)
        shards = -(-n // rows)
        if made.route == "clusters" and shards > 1:
            shards = math.ceil(tuning.COPIES * n / (0.9 * rows))
            centres = max(2, min(4 * shards, n // 4)) if clusters is None else clusters
            return dataclasses.replace(
                made, rows=rows, shards=shards, block=block or rows, clusters=centres, group=group, segment=2
            )
        return dataclasses.replace(made, rows=min(rows, n), shards=shards, block=block or rows, group=group)

    return planned


def by_shards(
    monkeypatch: pytest.MonkeyPatch,
    rows: int,
    block: int | None = None,
    clusters: int | None = None,
    route: str | None = None,
    group: int = 2,
) -> None:
    """Let builds that start in this process have shards with at most this number of rows."""
    monkeypatch.setattr(build, "plan_build", plans_of(rows, block, clusters, route, group))
    if route == "exact-pairs":  # even if another method is expected to be faster
        monkeypatch.setattr(across, "can_join", lambda metric, d, isa: get_metric(metric).form == "gemm")


def tight_memory(
    source: Any,
    k: int,
    method: str = "exact",
    *,
    metric: str = "euclidean",
    recall: float | None = None,
    shards: int = 3,
    queries: Any = None,
) -> int:
    """Return a budget in bytes with which one thread builds a graph of the source in `shards` shards or more.

    With `queries`, return a budget with which one thread searches the source for these queries.
    """
    m = None if queries is None else as_source(queries).n
    sizes = Sizes(as_source(source), k, metric, recall, (), 1, m)
    try:
        _PLANNED(sizes, method, 1)
    except BudgetExceeded as error:
        enough = int(str(error).partition("needs at least ")[2].partition(" ")[0])
    for memory in range(enough * 3 // 4, 2 * enough, 1 << 16):  # the stated smallest budget may be enough for all rows
        try:
            made = _PLANNED(sizes, method, memory)
        except BudgetExceeded:
            continue
        assert made.shards >= shards, made
        return memory
    raise AssertionError(f"{method}: not even {2 * enough} bytes")


def lists(graph: KNNGraph) -> Neighbors:
    """Return copies of the lists of a graph, which may be memory-mapped."""
    return Neighbors(np.array(graph.distances), np.array(graph.indices))


def assert_exact(graph: KNNGraph, points: Any, k: int, metric: str = "euclidean") -> None:
    """Check that a graph has the same bits as the exact graph built in memory."""
    truth = tonari.knn_graph(points, k, metric=metric, method="exact")
    assert graph.method == "exact"
    assert_same_neighbors(lists(graph), lists(truth), metric=metric)


def contents(folder: Path) -> list[str]:
    """Return the paths of all files under a folder."""
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def clustered(n: int, d: int = 8, seed: int = 0) -> Array:
    """Make points in overlapping clusters of different sizes, with some repeated rows."""
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((max(2, n // 50), d)) * 2
    rows = (centres[rng.integers(len(centres), size=n) ** 2 % len(centres)] + rng.standard_normal((n, d))).astype(
        np.float32
    )
    rows[:: n // 8] = rows[0]
    return rows


class Shuffled:
    """An executor that runs tasks in random order on several workers, each with a pickled copy of the job."""

    def __init__(self, seed: int, workers: int) -> None:
        self._rng, self.workers = np.random.default_rng(seed), workers

    def run(self, job: Job, tasks: Sequence[Task], done: Callable[[Task], None]) -> None:
        """Run tasks, some of them twice, as happens when a worker is wrongly believed dead."""
        workers = [Worker(pickle.loads(pickle.dumps(job)), "cpu") for _ in range(self.workers)]
        for at in self._rng.permutation(len(tasks)).tolist():
            task, worker = tasks[at], workers[int(self._rng.integers(self.workers))]
            step = step_of(job, task)
            if at % 3 == 0:  # up to its record, which it writes last
                pieces = step.read(worker, task.args)
                step.write(worker, task.args, (step.compute(worker, task.args, piece) for piece in pieces))
            run_task(worker, task, lambda: None)
            done(task)


def by_executor(monkeypatch: pytest.MonkeyPatch, executor: Any) -> None:
    """Let builds in this process run their tasks in an executor."""
    monkeypatch.setattr(api, "_executor", lambda *_: executor)


# ---------------------------------------------------------------- small builds from files

SMALL = {"exact": 60, "clusters": 80, "ggm": 60}  # number of rows in a shard, by route
COMPLETE = ["distances.npy", "indices.npy", "lock", "manifest.json"]


def small_points(folder: Path) -> Path:
    """Write 240 points to a file, and return its path."""
    np.save(folder / "points.npy", clustered(240))
    return folder / "points.npy"


def small(points: Any, out: Path, method: str = "exact", **more: Any) -> tonari.KNNGraph:
    """Build a graph with 4 neighbours per point from a file of points."""
    given: dict[str, Any] = {"method": method, "threads": 1} | ({} if method == "exact" else {"recall": 0.9})
    return tonari.build_graph(points, 4, out, **given | more)


class Stopped(Exception):
    """The exception that ends a build early."""


def stopped(points: Any, out: Path, method: str, after: int | str, patch: pytest.MonkeyPatch, **more: Any) -> None:
    """Start a build, and end it early: after a number of tasks, or before the task of this name."""
    finish, done = Workspace.finish, []

    def until(files: Workspace, task: str, made: Any) -> None:
        if task == after or len(done) == after:
            raise Stopped
        done.append(task)
        finish(files, task, made)

    with patch.context() as patched:
        by_shards(patched, SMALL[method])
        patched.setattr(Workspace, "finish", until)
        with pytest.raises(Stopped):
            small(points, out, method, **more)


def built(points: Any, k: int, out: Path, method: str, **given: Any) -> tonari.KNNGraph:
    return tonari.build_graph(points, k, out / "graph", method=method, **given)


def check_built(graph: tonari.KNNGraph, points: Any, metric: str = "euclidean") -> Neighbors:
    """Check that lists are valid and complete and distances exact; return the truth."""
    n, found = graph.n, lists(graph)
    dtype = np.float64 if np.asarray(points).dtype == np.float64 else np.float32
    assert_valid_neighbors(found, m=n, n=n, k=graph.k, dtype=dtype, metric=metric, self_ids=np.arange(n))
    whole = brute(points, points, n - 1, metric, self_ids=np.arange(n))
    every = np.empty((n, n), whole.distances.dtype)
    np.put_along_axis(every, whole.indices.astype(np.int64), whole.distances, axis=1)
    np.testing.assert_array_equal(np.take_along_axis(every, found.indices.astype(np.int64), axis=1), found.distances)
    return Neighbors(*(np.ascontiguousarray(part[:, : graph.k]) for part in whole))
