"""The CPU kernels of exact search that this machine can run, and searches by a plan that names one of them."""

from __future__ import annotations

import itertools
from typing import Any

import tonari
from tests.helpers.thinning import SAME_KERNELS
from tonari.core import _native
from tonari.core.results.neighbors import Neighbors
from tonari.exact.precisions import kernel_name

ISAS = _native.supported_isas()
WITHOUT_AMX = [isa for isa in ISAS if isa != "amx"]  # for what has no code for AMX, which then runs that for AVX-512


def ways(metric: str) -> list[tuple[str, tuple[str, ...]]]:
    """Return (instruction set, precisions) of a metric, with every choice of precisions from coarse to fine.

    A choice that runs the kernels of an earlier instruction set is left out: float32 alone on AMX. A metric with the
    kernels of another one only has the choice of all precisions of each instruction set.
    """
    found: dict[tuple[str, ...], tuple[str, tuple[str, ...]]] = {}
    for isa in ISAS:
        screens = [p for p in ("int8", "bfloat16", "float32") if kernel_name(metric, p, isa) in _native.kernel_names()]
        for length in range(len(screens) if metric in SAME_KERNELS else 1, len(screens) + 1):
            for precisions in itertools.combinations(screens, length):
                found.setdefault(tuple(kernel_name(metric, p, isa) for p in precisions), (isa, precisions))
    return list(found.values())


def planned_search(queries: Any, points: Any, k: int, metric: str = "euclidean", **choices: Any) -> Neighbors:
    """Search by a plan with these overrides; None leaves the choice to the plan."""
    n, d = points.shape
    choices = {name: choice for name, choice in choices.items() if choice is not None}
    plan = tonari.plan(n, len(queries), d, k, dtype=points.dtype, metric=metric, **{"threads": 1} | choices)
    return tonari.search(queries, points, k, metric=metric, plan=plan)
