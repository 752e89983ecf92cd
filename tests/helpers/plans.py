"""Plans for tests; keywords may be fields of the problem as well as overrides of the plan."""

from __future__ import annotations

import inspect
from typing import Any

from tonari.bits.cuda.plan import BitsCudaPlan, plan_bits_on_cuda
from tonari.core.problem import Problem
from tonari.exact.cuda.plan import CudaPlan
from tonari.exact.cuda.planning import plan_on_cuda
from tonari.exact.plan import ExactPlan
from tonari.exact.planning.planner import plan_on_cpu
from tonari.kdtree.plan import TreePlan, plan_tree
from tonari.metrics.problem import make_problem
from tonari.nn_descent.plan import DescentPlan
from tonari.nn_descent.planning.planner import plan_descent

_OF_PROBLEM = set(inspect.signature(make_problem).parameters)


def problem(n: int, m: int, d: int, k: int, **given: Any) -> Problem:
    """Make a problem; default: float32 rows and the Euclidean metric."""
    return make_problem(n, m, d, k, **{"dtype": "float32", "metric": "euclidean"} | given)


def _split(given: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    asked = {name: value for name, value in given.items() if name in _OF_PROBLEM}
    return asked, {name: value for name, value in given.items() if name not in _OF_PROBLEM}


def exact(n: int, m: int, d: int, k: int, **given: Any) -> ExactPlan:
    """Plan an exact search by brute force on the CPU."""
    asked, rest = _split(given)
    return plan_on_cpu(problem(n, m, d, k, **asked), **rest)


def exact_cuda(n: int, m: int, d: int, k: int, **given: Any) -> CudaPlan:
    """Plan an exact search by brute force on CUDA."""
    asked, rest = _split(given)
    return plan_on_cuda(problem(n, m, d, k, **asked), **rest)


def bits_cuda(n: int, m: int, d: int, k: int, **given: Any) -> BitsCudaPlan:
    """Plan a search of rows of bits on CUDA."""
    asked, rest = _split({"dtype": "uint8", "metric": "hamming"} | given)
    return plan_bits_on_cuda(problem(n, m, d, k, **asked), **rest)


def tree(n: int, m: int, d: int, k: int, **given: Any) -> TreePlan:
    """Plan a search by a k-d tree."""
    asked, rest = _split(given)
    return plan_tree(problem(n, m, d, k, **asked), **rest)


def descent(n: int, d: int, k: int, **given: Any) -> DescentPlan:
    """Plan a graph by NN-Descent."""
    asked, rest = _split(given)
    return plan_descent(problem(n, n, d, k, self_join=True, **asked), **rest)
