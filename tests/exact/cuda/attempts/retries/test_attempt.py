"""Attempts: unproved rows are searched in batches, and no attempt changes the answer of a proved row.

Without a GPU, Triton's interpreter runs the kernels on the CPU.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.helpers.checks import assert_same_neighbors, gaussian
from tests.helpers.devices import HAS_TORCH, needs_torch
from tests.helpers.gpu_checks import DEVICE, on_host, plan_of, tensors
from tonari.core.results.neighbors import Neighbors
from tonari.metrics.reference import brute

pytestmark = [needs_torch]
if HAS_TORCH:
    import torch

    from tonari.exact.cuda.attempts.first import DevicePoints
    from tonari.exact.cuda.attempts.ladder import attempts_at, make_attempts, search_all
    from tonari.exact.cuda.attempts.retries.attempt import Attempt, Unproved
    from tonari.exact.report import Report

M, N, D, K = 7, 140, 6, 3


def unproved(rows: list[int], **choices: Any) -> Any:
    """Make a search whose answers are all wrong; these rows are unproved."""
    queries, points = tensors(DEVICE, gaussian(M, D, 1), gaussian(N, D))
    plan = plan_of(queries, points, K, devices=(DEVICE,), **choices)
    search = DevicePoints(points, plan.metric, plan.precisions[0]).begin(queries, plan)
    found = Neighbors(torch.full((M, K), -7.0, device=DEVICE), torch.full((M, K), -7, dtype=torch.int32, device=DEVICE))
    proved = torch.ones(M, dtype=torch.uint8, device=DEVICE)
    proved[rows] = 0
    return Unproved(search, None, found, proved, Report(rows=M), search_all)


def check(left: Any, rows: list[int]) -> None:
    """Check that these rows have their answers, and that no other row changed."""
    found, truth = on_host(left.found), brute(gaussian(M, D, 1), gaussian(N, D), K)
    assert_same_neighbors(Neighbors(*(part[rows] for part in found)), Neighbors(*(part[rows] for part in truth)))
    others = [row for row in range(M) if row not in rows]
    assert (found.distances[others] == -7).all()
    assert (found.indices[others] == -7).all()


@pytest.mark.parametrize("batch", [1, 2, 7])
def test_rows_are_searched_in_batches_and_proved_ones_keep_what_they_have(batch: int) -> None:
    left, sizes = unproved([0, 2, 3, 6], query_batch=batch), []

    def way(search: Any) -> Any:
        again = search.again(search.plan.precisions[0], 64)

        def noted(queries: Any, own: Any) -> Any:
            if not queries.is_meta:  # not a rehearsal
                sizes.append(len(queries))
            return again(queries, own)

        return noted

    left.again(torch.arange(M, device=DEVICE), way, some_proved=True)
    assert sizes == [min(batch, M - begin) for begin in range(0, M, batch)]
    check(left, [0, 2, 3, 6])
    assert not len(left.look())


def test_rows_that_are_all_unproved_are_written_as_they_come() -> None:
    left = unproved([0, 2, 3, 6], query_batch=2)
    left.again(left.look(), lambda search: search.again(search.plan.precisions[0], 64))
    check(left, [0, 2, 3, 6])
    assert left.known is None
    assert not len(left.look())


def test_rows_are_searched_among_some_of_the_points() -> None:
    left, rows = unproved([1, 4, 5]), torch.tensor([1, 5], device=DEVICE)
    truth = brute(gaussian(M, D, 1), gaussian(N, D), K).indices[[1, 5]]
    numbers = np.union1d(truth, np.arange(0, N, 2))
    left.among(torch.from_numpy(numbers).to(DEVICE), rows)
    check(left, [1, 5])
    assert left.look().tolist() == [4]
    assert sum(left.report.rows_by_precision.values()) == 2


class Noting(Attempt if HAS_TORCH else object):  # type: ignore[misc]
    """An attempt that records each call, and proves the given number of rows."""

    when = "always"

    def __init__(self, name: str, steps: list[str], proves: int, wanted: bool = True) -> None:
        self.name, self.steps, self.proves, self.wanted = name, steps, proves, wanted

    def worth(self, left: Any) -> Any:
        self.steps.append(f"{self.name}?")
        return left.look() if self.wanted else None

    def run(self, left: Any, given: Any) -> None:
        self.steps.append(self.name)
        assert str(left.following) == ("b: always" if self.name == "a" else "c: always" if self.name == "b" else "None")
        left.proved[given[: self.proves]] = 1
        left.known = given[self.proves :]


def test_attempts_are_made_in_turn_until_no_row_is_left() -> None:
    steps: list[str] = []
    left = unproved([0, 1, 2])
    make_attempts(left, [Noting("a", steps, 1), Noting("b", steps, 0, wanted=False), Noting("c", steps, 0)])
    assert steps == ["a?", "a", "b?", "c?", "c"]
    assert [attempt.name for attempt in left.tried] == ["a", "c"]
    steps.clear()
    make_attempts(unproved([0, 1, 2]), [Noting("a", steps, 2), Noting("b", steps, 1), Noting("c", steps, 0)])
    assert steps == ["a?", "a", "b?", "b"]


def test_the_attempts_can_be_printed() -> None:
    left = unproved([0])
    assert [attempt.name for attempt in attempts_at(left.search.levels())] == [
        "as bytes",
        "nearby",
        "nearby at once",
        "level 1, split",
        "without copies",
        "nearby",
        "values",
    ]
    assert all(str(attempt).startswith(f"{attempt.name}: ") for attempt in attempts_at(left.search.levels()))
