"""Answers to calls whose array of queries has no rows.

The arguments of such a call are checked, but no plan, preparation or kernel is needed. The answers are NumPy arrays,
and are converted for the caller like the results of a search.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tonari.core.errors import Unsupported
from tonari.core.problem import Problem
from tonari.core.results.neighbors import Neighbors, no_neighbors
from tonari.core.results.radius_neighbors import RadiusNeighbors, none_within
from tonari.methods.registry import search_method


def none_nearest(problem: Problem, method: str) -> Neighbors:
    """Return the result of a search without queries: arrays of shape (0, k).

    Parameters
    ----------
    problem : Problem
        The problem of the same call with a single query.
    method : str
        The method that the caller named; if it cannot solve the problem, Unsupported is raised.
    """
    refuse_unsupported(problem, method)
    return no_neighbors(problem.k, problem.n, problem.value_dtype)


def none_within_radius(problem: Problem, method: str) -> RadiusNeighbors:
    """Return the result of a radius search without queries; see :func:`none_nearest`."""
    refuse_unsupported(problem, method)
    return none_within(problem.n, problem.value_dtype)


def none_counted(problem: Problem, method: str) -> npt.NDArray[np.int64]:
    """Return the result of a radius count without queries; see :func:`none_nearest`."""
    refuse_unsupported(problem, method)
    return np.zeros(0, np.int64)


def refuse_unsupported(problem: Problem, method: str) -> None:
    """Raise Unsupported if the method that the caller named cannot solve a problem."""
    why_not = None if method == "auto" else search_method(method, problem.device).refuses(problem)
    if why_not is not None:
        raise Unsupported(why_not)
