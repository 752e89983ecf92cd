"""Answers to calls without queries: checked as all calls are, but nothing is planned, prepared or launched for them.

They are NumPy arrays, which are handed back to the caller's side as those of a search are.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tonari.core.errors import Unsupported
from tonari.core.neighbors import Neighbors, no_neighbors
from tonari.core.problem import Problem
from tonari.core.radius_neighbors import RadiusNeighbors, none_within
from tonari.methods.registry import search_method


def none_nearest(problem: Problem, method: str) -> Neighbors:
    """Return the neighbours of no queries, of shape (0, k).

    Parameters
    ----------
    problem : Problem
        That of one query.
    method : str
        As the caller named it; Unsupported if it does not solve the problem.
    """
    refuse_unsupported(problem, method)
    return no_neighbors(problem.k, problem.n, problem.value_dtype)


def none_within_radius(problem: Problem, method: str) -> RadiusNeighbors:
    """Return what is within the radii of no queries; see :func:`none_nearest`."""
    refuse_unsupported(problem, method)
    return none_within(problem.n, problem.value_dtype)


def none_counted(problem: Problem, method: str) -> npt.NDArray[np.int64]:
    """Return the counts of no queries; see :func:`none_nearest`."""
    refuse_unsupported(problem, method)
    return np.zeros(0, np.int64)


def refuse_unsupported(problem: Problem, method: str) -> None:
    """Raise Unsupported if a method that is named does not solve a problem."""
    why_not = None if method == "auto" else search_method(method, problem.device).refuses(problem)
    if why_not is not None:
        raise Unsupported(why_not)
