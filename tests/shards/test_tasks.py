"""Tasks of one piece, and the settings of a worker: memory, threads, and a method for each shard."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.helpers.checks import gaussian
from tonari.core.errors import BudgetExceeded
from tonari.metrics.reference import brute
from tonari.nn_descent.method import NnDescent
from tonari.shards.planning.planner import plan_build
from tonari.shards.planning.sizes import Sizes
from tonari.shards.source import as_source
from tonari.shards.tasks import Job, Worker, in_one_piece

POINTS = gaussian(300, 4)


def job_of(folder: Path, **given: Any) -> Job:
    source = as_source(POINTS)
    plan = plan_build(Sizes(source, 5, "euclidean", 0.9, (), 1, None), "clusters", None)
    facts: dict[str, Any] = {"k": 5, "metric": "euclidean", "recall": 0.9, "seed": 0, "threads": 1, "memory": None}
    return Job(folder, source, plan=plan, **facts | given)


def test_a_task_of_one_piece_is_read_computed_and_written_once() -> None:
    step = in_one_piece(lambda worker, args: [args], lambda worker, args, piece: piece * 2, lambda w, a, made: made)  # type: ignore[arg-type,return-value]
    (piece,) = step.read(None, 3)  # type: ignore[arg-type]
    assert step.write(None, 3, iter([step.compute(None, 3, piece)])) == [3, 3]  # type: ignore[arg-type,comparison-overlap]


def test_without_a_budget_the_engine_decides_on_the_cpu(tmp_path: Path) -> None:
    job = job_of(tmp_path)
    assert Worker(job, "cpu").memory is None
    assert Worker(dataclasses.replace(job, memory=10**8), "cpu").memory == job.plan.engine_bytes
    assert Worker(job, "cpu").threads == 1


def test_the_first_rows_of_a_worker_do_not_wait_in_page_locked_memory(tmp_path: Path) -> None:
    """Nothing is being computed yet, so the memory of the device is free."""
    job = job_of(tmp_path)
    for staged, expected in ((1, ["at", "at_later", "ranges_later"]), (0, ["at", "at", "ranges"])):
        called: list[str] = []

        def called_as(name: str, called: list[str] = called) -> Any:
            return lambda _: called.append(name)

        worker = Worker(dataclasses.replace(job, plan=dataclasses.replace(job.plan, staged_bytes=staged)), "cpu")
        names = ("at", "at_later", "ranges", "ranges_later")
        worker.__dict__["load"] = SimpleNamespace(**{name: called_as(name) for name in names})
        for _ in range(2):
            worker.rows_at(np.arange(3))
        worker.rows_of([slice(0, 3)])
        assert called == expected


def test_searches_are_exact(tmp_path: Path) -> None:
    found = Worker(job_of(tmp_path), "cpu").nearest(POINTS, POINTS, 5, self_join=True)
    assert found.indices.tolist() == brute(POINTS, POINTS, 5, self_ids=np.arange(300)).indices.tolist()


@pytest.mark.parametrize("fits", [True, False])
def test_a_shard_that_nn_descent_has_no_memory_for_is_built_by_force(
    fits: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned: list[Any] = []

    def plan(self: Any, problem: Any, **given: Any) -> Any:
        planned.append(given)
        if not fits:
            raise BudgetExceeded("too little", least=1)
        return type("Plan", (), {"seconds": np.inf})()

    worker = Worker(job_of(tmp_path), "cpu")
    monkeypatch.setattr(NnDescent, "plan", plan)
    found = worker.graph(POINTS, 7, 0.9)
    assert found.indices.tolist() == brute(POINTS, POINTS, 5, self_ids=np.arange(300)).indices.tolist()
    assert planned == [{"recall": 0.9, "seed": 7, "light_rounds": 2}]


def test_points_and_queries_are_known_to_be_unchanged(tmp_path: Path) -> None:
    for name in ("p.npy", "q.npy"):
        np.save(tmp_path / name, POINTS)
    job = dataclasses.replace(
        job_of(tmp_path), source=as_source(tmp_path / "p.npy"), queries=as_source(tmp_path / "q.npy")
    )
    job.check_unchanged()
    np.save(tmp_path / "q.npy", POINTS[:-1])
    with pytest.raises(ValueError, match=r"q\.npy"):
        job.check_unchanged()
