"""Steps of queries whose number is adapted to the time of earlier steps."""

from __future__ import annotations

import pytest

from tests.helpers.devices import HAS_TORCH, needs_torch
from tonari.kdtree import tuning

if HAS_TORCH:
    from tonari.kdtree.cuda.steps import Steps

pytestmark = [needs_torch]


class Clock:
    """Launches that take some seconds per query; with `waits`, the first are finished when the next begins."""

    seconds_each, waits = 0.0, False

    def __init__(self) -> None:
        self.queries = 0

    def stop(self) -> None:
        pass

    def is_done(self) -> bool:
        return self.waits

    def seconds(self) -> float:
        return self.queries * self.seconds_each


def sizes_of(steps: Steps, queries: int) -> list[int]:
    """Return the sizes of the launches for a number of queries."""
    sizes = []
    while queries:
        sizes.append(min(queries, steps.size))
        with steps.launching(sizes[-1]):
            pass
        assert steps._last is not None
        steps._last[1].queries = sizes[-1]
        queries -= sizes[-1]
    return sizes


def steps_of(monkeypatch: pytest.MonkeyPatch, seconds_each: float, *, waits: bool = False) -> Steps:
    monkeypatch.setattr(Clock, "seconds_each", seconds_each)
    monkeypatch.setattr(Clock, "waits", waits)
    steps = Steps("cpu")
    monkeypatch.setattr(steps, "_clock", Clock)
    return steps


def test_fast_steps_are_followed_by_longer_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    first, growth = tuning.FIRST_STEP, tuning.STEP_GROWTH
    assert sizes_of(steps_of(monkeypatch, 1e-9), 1_000_000) == [first, first, 16 * first, 16 * first, 860_736]
    steps = steps_of(monkeypatch, 2e-9, waits=True)
    assert sizes_of(steps, first) == [first]  # a pilot whose end was waited for
    assert sizes_of(steps, 1_000_000) == [growth * first, 1_000_000 - growth * first]


@pytest.mark.parametrize("waits", [False, True])
def test_no_step_is_expected_to_take_more_than_twice_its_seconds(waits: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    each = tuning.STEP_SECONDS / 10_000
    sizes = sizes_of(steps_of(monkeypatch, each, waits=waits), 100_000)
    assert max(sizes) * each <= 2 * tuning.STEP_SECONDS
    assert sizes[0] == tuning.FIRST_STEP < max(sizes)
    assert set(sizes_of(steps_of(monkeypatch, 1.0, waits=waits), 20_000)) == {tuning.FIRST_STEP, 20_000 % 4096}


def test_steps_begin_at_multiples_of_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = sizes_of(steps_of(monkeypatch, tuning.STEP_SECONDS / 21_709), 200_000)
    assert max(sizes) > 2 * tuning.FIRST_STEP
    assert {size % tuning.FIRST_STEP for size in sizes[:-1]} == {0}


def test_few_queries_say_nothing_about_many(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = steps_of(monkeypatch, 1e-9, waits=True)
    sizes_of(steps, 10_000)
    longest = steps.size
    sizes_of(steps, 10)
    assert steps.size == longest


def test_the_host_has_a_clock() -> None:
    steps = Steps("cpu")
    with steps.launching(100):
        pass
    assert steps.size == tuning.FIRST_STEP
