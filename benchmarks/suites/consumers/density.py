"""Lists within a radius, outlier factors and clusters, compared with scikit-learn's, each in its own process.

Our lists are verified on a sample of rows against tonari.metrics.reference, factors by their definition, and
clusters by the counts of a sample of rows. scikit-learn must find the same lists and labels, and equal factors up to
rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...harness.case import Case
from ...harness.device import take_turns
from ...harness.peers.estimators import CLUSTERS, IMPUTER, OURS, OUTLIERS, RADIUS, SKLEARN
from ...harness.proof import WrongAnswer, neighbors
from ...harness.run import Run
from .data import points_of
from .estimators import contestants, refused, write

PROVED_ROWS = 64
FACTORS = 4  # number of verified outlier factors; each depends on neighbours of neighbours of a row's neighbours
ROUNDING = 1e-7  # largest relative error of a verified outlier factor


def fitted(run: Run, case: Case) -> None:
    """Verify and time a case's estimator in both libraries; write a row for each library."""
    if refused(run, case):
        return
    points, (name, parameters) = points_of(run, case), asked(case)
    with contestants(run, case, points) as found:
        for one in found.values():
            one.fit(name, parameters)
        ours = found[OURS].fitted()
        rows = np.sort(np.random.default_rng(0).choice(case.n, min(PROVED_ROWS, case.n), replace=False))
        PROOFS[name](ours, points, parameters, rows)
        if SKLEARN in found:
            same(name, ours, found[SKLEARN].fitted())
        calls: dict[str, Callable[[], object]] = {
            who: lambda one=one: one.fit(name, parameters)  # type: ignore[misc]
            for who, one in found.items()
        }
        timings = take_turns(run.device, calls, seconds=0.0, least=run.repeats, most=run.repeats, settle=True)
    facts = {"proof": neighbors.PROOF, "proved": len(rows), "parameters": parameters}
    write(run, case, timings, {OURS: facts, SKLEARN: {"parameters": parameters}})


def asked(case: Case) -> tuple[str, dict[str, Any]]:
    """Return the class name of a case's estimator, and its parameters."""
    parameters = dict(case.parameters)
    return parameters.pop("estimator"), parameters


def prove_lists(ours: tuple[Any, ...], points: Any, parameters: dict[str, Any], rows: Any) -> None:
    """Raise WrongAnswer unless the lists of the sampled `rows` are those of the reference."""
    lengths, distances, indices = ours
    if "n_neighbors" in parameters:
        prove_nearest(distances.reshape(len(points), -1), indices.reshape(len(points), -1), points, rows)
        return
    ends = np.cumsum(lengths)
    truth = within(points, parameters["radius"], rows)
    for row, begin, end in zip(rows, truth.indptr, truth.indptr[1:], strict=False):
        own = slice(ends[row] - lengths[row], ends[row])
        exact = np.array_equal(indices[own], truth.indices[begin:end])
        if not exact or not np.array_equal(distances[own], truth.distances[begin:end]):
            raise WrongAnswer(f"row {row} has another list than the reference")


def prove_nearest(distances: Any, indices: Any, points: Any, rows: Any) -> None:
    """Raise WrongAnswer unless the sampled `rows`, which have missing values, have the reference's neighbours."""
    from tonari.missing.reference import pairwise

    for row in rows:
        values = pairwise(points[row : row + 1], points)[0]
        values[row] = np.nan
        order = np.argsort(values, kind="stable")[: indices.shape[1]]  # NaN sorts last
        if not np.array_equal(indices[row], order) or not np.array_equal(distances[row], values[order]):
            raise WrongAnswer(f"row {row} has other neighbours than by the reference")


def prove_values(ours: tuple[Any, ...], points: Any, parameters: dict[str, Any], rows: Any) -> None:
    """Raise WrongAnswer unless sampled imputed values are the means over the reference's nearest donors."""
    from tonari.missing.reference import pairwise

    for row in rows:
        values = pairwise(points[row : row + 1], points)[0]
        order = np.argsort(values, kind="stable")
        for column in np.flatnonzero(np.isnan(points[row])):
            donors = order[~np.isnan(points[order, column])][: parameters["n_neighbors"]]
            if abs(ours[0][row, column] - points[donors, column].mean()) > ROUNDING:
                raise WrongAnswer(f"row {row} has another value in column {column} than the mean of its donors")


def prove_factors(ours: tuple[Any, ...], points: Any, parameters: dict[str, Any], rows: Any) -> None:
    """Raise WrongAnswer unless sampled outlier factors follow by definition from the reference's neighbours."""
    from tonari.metrics.reference import brute

    rows = rows[:FACTORS]

    def lists(of: Any) -> Any:
        return brute(points[of], points, parameters["n_neighbors"], self_ids=of)

    def densities(of: Any) -> Any:
        near = lists(of)
        others, place = np.unique(near.indices, return_inverse=True)
        farthest = lists(others).distances[:, -1][place.reshape(near.indices.shape)]
        return 1 / (np.maximum(near.distances, farthest).mean(axis=1) + 1e-10)

    near = lists(rows).indices
    others, place = np.unique(near, return_inverse=True)
    expected = -(densities(others)[place.reshape(near.shape)] / densities(rows)[:, None]).mean(axis=1)
    wrong = np.abs(ours[0][rows] - expected) > ROUNDING * np.abs(expected)
    if wrong.any():
        raise WrongAnswer(f"row {rows[wrong.argmax()]} has another factor than by the definition")


def prove_clusters(ours: tuple[Any, ...], points: Any, parameters: dict[str, Any], rows: Any) -> None:
    """Raise WrongAnswer unless labels and core points among the sampled `rows` follow from the reference's lists."""
    labels, ids = ours
    core = np.zeros(len(labels), bool)
    core[ids] = True
    truth = within(points, parameters["eps"], rows)
    for row, begin, end in zip(rows, truth.indptr, truth.indptr[1:], strict=False):
        near = truth.indices[begin:end]
        others = labels[near[core[near]]]
        if core[row] != (len(near) >= parameters["min_samples"]):
            raise WrongAnswer(f"row {row} has {len(near)} rows within eps: core is {core[row]}")
        expected = others.min() if len(others) else -1
        if labels[row] != expected or (core[row] and (others != expected).any()):
            raise WrongAnswer(f"row {row} has the label {labels[row]}, the core rows near it {set(others.tolist())}")


def within(points: Any, radius: float, rows: Any) -> Any:
    """Return the reference's lists within the radius for `rows`."""
    from tonari.metrics.reference import brute_within

    return brute_within(points[rows], points, np.full(len(rows), radius))


def same(name: str, ours: tuple[Any, ...], theirs: tuple[Any, ...]) -> None:
    """Raise WrongAnswer unless scikit-learn's integers equal ours, and its floats up to rounding."""
    for one, other in zip(ours, theirs, strict=True):
        equal = one.shape == other.shape and np.allclose(one, other, rtol=ROUNDING, atol=ROUNDING)
        if not equal or (one.dtype.kind in "iu" and not np.array_equal(one, other)):
            raise WrongAnswer(f"{name} of {SKLEARN} finds something else")


PROOFS = {RADIUS: prove_lists, OUTLIERS: prove_factors, CLUSTERS: prove_clusters, IMPUTER: prove_values}


def call(run: Run, case: Case) -> Callable[[], Any]:
    """Return a call that fits the estimator of a case in this process, for a comparison of two versions of tonari."""
    from tonari import estimators

    points, (name, parameters) = points_of(run, case), asked(case)

    def fit() -> Any:
        estimator = getattr(estimators, name)(**parameters, n_jobs=run.threads).fit(points)
        if name == IMPUTER:
            return estimator.transform(points)
        if "n_neighbors" in parameters and name == RADIUS:
            return estimator.kneighbors()
        return estimator.radius_neighbors(points) if name == RADIUS else estimator

    return fit
