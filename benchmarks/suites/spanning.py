"""Minimum spanning trees by mutual reachability on the CPU, timed alternately with fast_hdbscan.

One call is timed, from points to tree. The tree is verified first: the weights of some edges, and the cycle property
for all pairs with some points. By this property, no pair is lighter than the heaviest edge on the path between its two
points in the tree; the weights of pairs are reference values. fast_hdbscan computes in float32; the sum of its weights
must equal ours except for its rounding.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import Any

import numpy as np

from ..harness.case import Bar, Case, Suite
from ..harness.device import timing_of
from ..harness.peers import trees
from ..harness.proof import WrongAnswer
from ..harness.run import Run, seconds_of

PROVED_ROWS = 16
AGREEING = 1e-4  # allowed relative difference between the sum of a peer's weights and the true sum
Rows = Any


def blobs(case: Case) -> Rows:
    """Return Gaussian clusters like scikit-learn's make_blobs, with centres in a cube of side 20."""
    rng = np.random.default_rng(0)
    centres = rng.uniform(-10, 10, (case.parameters["centres"], case.d))
    width = case.parameters.get("width", 1.0)
    points = centres[rng.integers(len(centres), size=case.n)] + width * rng.standard_normal((case.n, case.d))
    return points.astype(np.float32)


def cube(case: Case) -> Rows:
    """Return points that fill the unit cube evenly."""
    return np.random.default_rng(0).random((case.n, case.d), dtype=np.float32)


MAKERS: dict[str, Callable[[Case], Rows]] = {"blobs": blobs, "cube": cube}


def points_of(run: Run, case: Case) -> Rows:
    """Return the points of a case."""
    return run.keep((case.data, case.n, case.d, *case.parameters.values()), lambda: MAKERS[case.data](case))


def workload(run: Run, case: Case) -> Callable[[], Any]:
    """Return a function that runs a case once; comparisons of two versions time it."""
    points, options = points_of(run, case), {"metric": case.metric} | run.options()
    return lambda: run.tonari.mutual_reachability_tree(points, case.k, **options)


def prove(run: Run, case: Case, tree: Any, points: Rows) -> int:
    """Check the cycle property for all pairs with some points; return the number of these points.

    Core distances come from ``tonari.kth_distance``, which has its own tests; those of these points are checked here.
    """
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import breadth_first_order

    import tonari

    n = len(points)
    ends = tree.edges.T
    graph = coo_matrix((np.ones(n - 1), ends), shape=(n, n)).tocsr()
    count = min(PROVED_ROWS, n)
    core = tonari.kth_distance(points, case.k - 1, metric=case.metric, **run.options())
    for row in np.random.default_rng(12345).choice(n, count, replace=False).tolist():
        order, before = breadth_first_order(graph, row, directed=False)
        if len(order) != n:
            raise WrongAnswer("the edges do not join all points")
        heaviest, direct = _heaviest(tree, order.tolist(), before, n), _weights(case, points, core, row)
        own = (ends == row).any(axis=0)
        others = ends[:, own].sum(axis=0) - row
        if (direct < heaviest).any():
            raise WrongAnswer(f"a pair of point {row} is lighter than its path")
        if (direct[others] != tree.weights[own]).any():
            raise WrongAnswer(f"an edge of point {row} has another weight")
    return count


def _heaviest(tree: Any, order: list[int], before: Any, n: int) -> Any:
    """Return, for each point, the largest weight on its path to the first point of `order` in the tree."""
    keys = tree.edges[:, 0].astype(np.int64) * n + tree.edges[:, 1]
    by_key = np.argsort(keys)
    later = np.array(order[1:])
    low, high = np.minimum(later, before[later]).astype(np.int64), np.maximum(later, before[later])
    last = tree.weights[by_key[np.searchsorted(keys[by_key], low * n + high)]]
    heaviest = [0.0] * n
    for point, parent, weight in zip(order[1:], before[later].tolist(), last.tolist(), strict=True):
        heaviest[point] = max(heaviest[parent], weight)
    return np.array(heaviest)


def _weights(case: Case, points: Rows, core: Rows, row: int) -> Any:
    """Return the mutual reachability distances from point `row` to all points, with inf to itself."""
    from tonari.metrics.reference import brute

    n = len(points)
    near = brute(points[row : row + 1], points, n - 1, case.metric, self_ids=np.array([row]))
    if core[row] != near.distances[0, case.k - 2]:
        raise WrongAnswer(f"the core distance of point {row} differs from the reference")
    found = np.full(n, np.inf)
    found[near.indices[0]] = near.distances[0]
    return np.maximum(found, np.maximum(core, core[row]))


def compare(run: Run, case: Case) -> None:
    """Verify the tree of a case, time it and the peer, and check the required speed-up."""
    points, call = points_of(run, case), workload(run, case)
    tree = call()
    proved = prove(run, case, tree, points)
    why_not = trees.missing()
    if why_not or not run.wants(trees.FAST_HDBSCAN) or not case.peers:
        ours = {"who": "tonari", "proved": proved, "recall": 1.0} | seconds_of(run.time(call))
        run.write(case, [ours, {"who": trees.FAST_HDBSCAN, "note": why_not or "not wanted"}])
        return
    ours, theirs = [], []
    with trees.FastHdbscan(points, case.k, run.threads or 1) as peer:
        total = peer.build(len(points))
        expected = float(tree.weights.sum(dtype=np.float64))
        if abs(total - expected) > AGREEING * expected:
            raise WrongAnswer(f"the weights of {trees.FAST_HDBSCAN} have the sum {total}, and ours {expected}")
        for _ in range(min(3, run.repeats)):
            ours.append(run.time_once(call))
            theirs.append(run.time_once(lambda: peer.build(len(points))))
    measured = {trees.FAST_HDBSCAN: statistics.median(theirs) / statistics.median(ours)}
    base = {"who": "tonari", "proved": proved, "recall": 1.0} | seconds_of(timing_of(ours))
    found = [base | verdict for verdict in run.verdicts(case.bars, measured)]
    run.write(case, [*found, {"who": trees.FAST_HDBSCAN} | seconds_of(timing_of(theirs))])


def _case(name: str, d: int, data: str, cost: float, *, n: int = 100_000, bar: float = 3.0, **parameters: Any) -> Case:
    return Case(
        *(name, "cpu", n, n, d, 6),
        work=compare,
        graph=True,
        data=data,
        parameters=parameters,
        peers=(trees.FAST_HDBSCAN,),
        bars=(Bar(trees.FAST_HDBSCAN, bar, home=""),),
        cost=cost,
    )


SUITE = Suite(
    "spanning",
    "spanning",
    (
        _case("blobs", 20, "blobs", 300, centres=10),
        _case("cube", 20, "cube", 2_000),
        _case("plane", 2, "blobs", 60, centres=10, bar=4.0),
        _case("space", 3, "blobs", 60, centres=10, bar=4.0),
        _case("blobs-d5", 5, "blobs", 60, centres=10, bar=4.0),
        _case("tight", 5, "blobs", 60, n=50_000, centres=300, width=0.01, bar=4.0),
    ),
    libraries=("tonari", "numpy", "scipy", "fast_hdbscan", "numba"),
    torch=False,
    workload=workload,
)
