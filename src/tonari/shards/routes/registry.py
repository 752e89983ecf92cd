"""The routes by name, and the function that runs a task from beginning to end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from tonari.core.process.floats import in_default_floats
from tonari.shards.routes.cluster_route import CLUSTERS
from tonari.shards.routes.exact_route import EXACT, EXACT_PAIRS
from tonari.shards.routes.merge_route import MERGES
from tonari.shards.tasks import Job, Route, Step, Task, Worker

ROUTES: dict[str, Route] = {"exact": EXACT, "exact-pairs": EXACT_PAIRS, "clusters": CLUSTERS, "ggm": MERGES}


def step_of(job: Job, task: Task) -> Step:
    """Return the three functions that read, compute and write a task of this kind."""
    return ROUTES[job.plan.route].steps[task.kind]


@in_default_floats
def run_task(worker: Worker, task: Task, before_writing: Callable[[], None]) -> str:
    """Run a single task, unless it is finished already, and return its name."""
    job = worker.job
    if not job.files.is_done(task.name):
        job.check_unchanged()
        worker.records.pop(task.name, None)  # parts of an earlier attempt that failed
        step = step_of(job, task)
        worker.finish(task, step.write(worker, task.args, _computed(worker, step, task, before_writing)))
    return task.name


def _computed(worker: Worker, step: Step, task: Task, before_writing: Callable[[], None]) -> Iterator[Any]:
    for piece in step.read(worker, task.args):
        result = worker.compute(step, task, piece)
        del piece
        before_writing()
        yield result
        del result
