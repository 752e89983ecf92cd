"""What a plan is expected to take, in seconds: one model, which `auto`, `tonari plan` and progress all use."""

from __future__ import annotations

import functools
import math
from typing import Any

from tonari import inputs
from tonari.core._native import supported_isas
from tonari.core.plan import Plan
from tonari.core.problem import Problem
from tonari.costs.formulas import BruteCosts, MeanVisits, TreeCosts
from tonari.costs.rates import BRUTE, CARD, DESCENT, LOOK_BYTE, READ_RATE, SHARED, TREE
from tonari.metrics import get_metric

_FEW_DIMENSIONS = 30  # up to here the work on survivors sets the pace, and products that are shared add to it


def brute_seconds(problem: Problem, isa: str, workers: int, *, shared: bool = False) -> float:
    """Brute force, with the packing of the points.

    Parameters
    ----------
    problem : Problem
    isa : str
        Instruction set; "" on CUDA.
    workers : int
        Cores or devices.
    shared : bool
        Whether a product serves both of its rows, as in a self-join on the CPU.
    """
    costs = _brute(problem, isa)
    seconds = costs.seconds(problem.n, problem.m, problem.d, problem.k, workers)
    return seconds * SHARED if shared and problem.d <= _FEW_DIMENSIONS else seconds


def brute_work(problem: Problem, isa: str, *, read_bytes: int, prepared: bool) -> float:
    """What brute force on the CPU shares out among threads, in seconds of one.

    Parameters
    ----------
    problem : Problem
    isa : str
    read_bytes : int
        Of packed points, all queries together: few queries wait for these rather than for arithmetic.
    prepared : bool
        Whether the points are packed already.
    """
    costs, n, d = _brute(problem, isa), problem.n, problem.d
    answering = max(costs.answering(n, problem.m, d, problem.k), read_bytes / READ_RATE)
    return answering if prepared else answering + costs.packing(n, d)


def packing_seconds(problem: Problem, isa: str, points: int) -> float:
    """Packing so many points, on one core."""
    return _brute(problem, isa).packing(points, problem.d)


def arrival_seconds(problem: Problem) -> float:
    """What every method takes before it begins: checking all values on the CPU, copying rows to CUDA."""
    points = problem.n * problem.d * inputs.dtype_of(problem.dtype).itemsize
    queries = 0 if problem.self_join else problem.m * problem.d * inputs.dtype_of(problem.query_dtype).itemsize
    if not problem.devices:
        return LOOK_BYTE * points
    several = len(problem.devices) > 1  # then rows are copied wherever they are
    come = points * (problem.host_points or several) + queries * (problem.host_queries or several)
    return come / CARD.link


def tree_work(problem: Problem, isa: str, height: int, held_bytes: int, *, prepared: bool) -> float:
    """What a tree on the CPU shares out among threads, in seconds of one; values in it take `held_bytes`."""
    n, m, d, k = problem.n, problem.m, problem.d, problem.k
    costs, seen = TREE[_cores(isa)], expected_visits(n, d, k, height)
    searching = costs.search(m, d, k, seen, 1, double=held_bytes == 8, tree_bytes=n * d * held_bytes)
    return searching if prepared else searching + costs.build(n, d, height, 1)


def build_seconds(plan: Any) -> float:
    """The build of a tree."""
    return _tree(plan).build(plan.n, plan.d, plan.height, max(1, plan.threads))


def tree_seconds(plan: Any, m: int, seen: MeanVisits) -> float:
    """The search of m queries that look at so much, in a tree that stands."""
    workers, double = plan.threads or len(plan.devices), plan.held == "float64"
    return _tree(plan).search(m, plan.d, plan.k, seen, workers, double=double, tree_bytes=plan.packed_bytes)


def expected_visits(n: int, d: int, k: int, height: int) -> MeanVisits:
    """What a query looks at among points that fill a cube evenly.

    A ball that holds k points, in cells that hold `leaf` points, touches ((k / leaf)^(1/d) + 1)^d of them (Friedman,
    Bentley and Finkel, An algorithm for finding best matches in logarithmic expected time, ACM TOMS 1977, section 4).
    """
    leaves = 1 << height
    size = n / leaves
    across = (k / size) ** (1.0 / d) + 1.0
    # The power of many dimensions is no float64, and far more than all leaves.
    touched = float(leaves) if d * math.log2(across) > height + 1 else min(float(leaves), across**d)
    return MeanVisits(touched, touched / 4 + height / 4, touched * size)


def _brute(problem: Problem, isa: str) -> BruteCosts:
    return BRUTE[isa or "cuda", get_metric(problem.metric).form]


def _tree(plan: Plan) -> TreeCosts:
    return TREE[_cores(plan.isa) if plan.isa else "cuda"]


@functools.cache
def _cores(isa: str) -> str:
    """Whose constants an instruction set has: AVX-512 beside AMX is that of other cores, which were measured apart."""
    return "amx" if isa == "avx512" and "amx" in supported_isas() else isa


def least_build_seconds(plan: Plan) -> float:
    """What the build of any tree takes, where brute force is planned."""
    return _tree(plan).start


def descent_seconds(plan: Any) -> float:
    """The whole graph by NN-Descent."""
    return DESCENT[plan.device].seconds(plan.n, plan.d, plan.list_size, max(1, plan.threads))
