"""What the tests of the exact engine share: every kernel this machine can run, and a search through a chosen one."""

from __future__ import annotations

import itertools
import signal
from collections.abc import Callable
from typing import Any

import pytest

import tonari
from tonari.core import _native
from tonari.core.neighbors import Neighbors
from tonari.exact.plan import kernel_name
from tonari.metrics import METRICS

ISAS = _native.supported_isas()


def ways(metric: str) -> list[tuple[str, tuple[str, ...]]]:
    """Every (instruction set, precisions) for a metric: each choice of its precisions, coarse to fine."""
    found = []
    for isa in ISAS:
        screens = [p for p in ("int8", "bfloat16", "float32") if kernel_name(metric, p, isa) in _native.kernel_names()]
        for length in range(1, len(screens) + 1):
            found += [(isa, precisions) for precisions in itertools.combinations(screens, length)]
    return found


def planned_search(queries: Any, points: Any, k: int, metric: str = "euclidean", **choices: Any) -> Neighbors:
    """Search with overrides of the plan, in the arguments that plan() has; one that is None is left to the plan."""
    n, d = points.shape
    choices = {name: choice for name, choice in choices.items() if choice is not None}
    plan = tonari.plan(n, len(queries), d, k, dtype=points.dtype, metric=metric, **{"threads": 1} | choices)
    return tonari.search(queries, points, k, metric=metric, plan=plan)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give a test with `metric` and `screens` every metric at all its precisions; with `screens` alone, those of L2."""
    if {"metric", "screens"} <= set(metafunc.fixturenames):
        pairs = [(metric, screens) for metric in METRICS for screens in ways(metric)]
        metafunc.parametrize(
            ("metric", "screens"),
            pairs,
            ids=[f"{metric}-{isa}-{'+'.join(precisions)}" for metric, (isa, precisions) in pairs],
        )
    elif "screens" in metafunc.fixturenames:  # the product form, which has the most kernels
        pairs = ways("euclidean")
        metafunc.parametrize("screens", pairs, ids=[f"{isa}-{'+'.join(precisions)}" for isa, precisions in pairs])


@pytest.fixture(autouse=True, scope="session")
def _interrupts_are_heard() -> None:
    """Ctrl-C is not ignored, as it is in what a shell runs in the background; programs that tests start inherit that.

    To say so in the program's own process, before it runs, would take a fork, which libraries with threads warn of.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def by_plan() -> Callable[..., Neighbors]:
    return planned_search
