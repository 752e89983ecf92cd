"""Graphs of all points within a radius on a GPU, compared with the graph of the k nearest of the same points.

The time is from float32 tensors on the device to lists on the device, with all steps: building or packing, ordering,
checks. Some rows are verified bit by bit by ``tonari.metrics.reference``. In all rows, the list within the
radius must agree with the graph of the k nearest: the first k entries are equal, and points of that graph beyond the
radius are not listed. The results are in the file of ``exact_cuda``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..harness.case import Bar, Case, Suite
from ..harness.contest import Ours, race
from ..harness.datasets import few_dimensions, hard
from ..harness.proof import WrongAnswer
from ..harness.proof.neighbors import sample_rows
from ..harness.run import Run, seconds_of

MILLION = 1_000_000
FIFTH = 5  # brute force: the radius is the median distance from a point to its 5th neighbour
MEAN = 32  # k-d tree, on points that fill a cube evenly: mean number of neighbours within the radius
PROVED_ROWS = 16
PROOF = "bits of tonari.metrics.reference, the k nearest of all rows"


def points_of(run: Run, case: Case) -> Any:
    """Return the points of a case as a tensor on the device of the run."""
    make = few_dimensions.make if case.data in few_dimensions.KINDS else hard.make
    shape = (case.data, case.n, 0, case.d)
    return run.keep(shape, lambda: make(*shape, run.where)).points


def lists_by(method: str, points: Any, radius: float) -> Callable[[], Any]:
    """Return a call that finds all points within the radius of each point, without caching anything between calls."""
    from tonari.core.results.radius_neighbors import Within, limits_for
    from tonari.methods.registry import method_for
    from tonari.metrics.problem import make_problem

    n, d = points.shape
    by = method_for(method, "cuda")
    where = {"devices": (str(points.device),), "host_points": False, "host_queries": False}
    plan = by.plan(make_problem(n, n, d, 1, dtype="float32", metric="euclidean", self_join=True, **where))
    limits = limits_for(radius, n, np.float32, closed=True, descending=False)
    request = Within(points, limits, range(n))
    return lambda: by.find_within(request, by.prepare(points, plan, False), plan, False)


def nearest_by(method: str, points: Any, k: int) -> Callable[[], Any]:
    """Return a call that builds the graph of the k nearest, without caching anything between calls."""
    from tonari.methods.registry import method_for
    from tonari.metrics.problem import make_problem

    n, d = points.shape
    by = method_for(method, "cuda")
    where = {"devices": (str(points.device),), "host_points": False, "host_queries": False}
    plan = by.plan(make_problem(n, n, d, k, dtype="float32", metric="euclidean", self_join=True, **where))
    return lambda: by.search_once(points, points, plan, self_join=True, progress=False)


def check_lists(found: Any, points: Any, nearest: Any, radius: float) -> int:
    """Verify lists within the radius; return the number of rows that were compared with the reference.

    Raises WrongAnswer if lists differ from the reference or from the graph of the k nearest."""
    import torch

    from tonari.core.results.radius_neighbors import limits_for
    from tonari.metrics.reference import brute_within

    begins, counts = found.indptr[:-1], found.indptr.diff()
    for column in range(nearest.indices.shape[1]):
        listed = counts > column
        at = begins[listed] + column
        same = torch.equal(found.indices[at], nearest.indices[listed, column])
        same &= torch.equal(found.distances[at], nearest.distances[listed, column])
        if not same or bool((nearest.distances[~listed, column] <= radius).any()):
            raise WrongAnswer(f"neighbour {column} is another than in the graph of the nearest")
    rows = points.cpu().numpy()
    some = sample_rows(len(rows), PROVED_ROWS)
    limits = limits_for(radius, len(some), np.float32, closed=True, descending=False)
    truth = brute_within(rows[some], rows, limits, self_ids=some)
    ends = found.indptr.cpu().numpy()
    for at, row in enumerate(some):
        theirs = slice(truth.indptr[at], truth.indptr[at + 1])
        ours = slice(ends[row], ends[row + 1])
        for name in ("indices", "distances"):
            if getattr(found, name)[ours].cpu().numpy().tobytes() != getattr(truth, name)[theirs].tobytes():
                raise WrongAnswer(f"{name} of row {row} are not those of the reference")
    return len(some)


def proved(run: Run, found: Any, points: Any, nearest: Any, radius: float) -> dict[str, Any]:
    """Return columns about lists and their proof."""
    lengths = {"mean": len(found.indices) / len(points), "longest": int(found.indptr.diff().max()), "radius": radius}
    return {"proved": run.prove(lambda: check_lists(found, points, nearest, radius)), "extras": lengths}


def graph(run: Run, case: Case) -> None:
    """Time the lists within a radius and the graph of the k nearest alternately, by one method."""
    points, method = points_of(run, case), case.parameters["method"]
    nearest = nearest_by(method, points, case.k)
    near = nearest()
    if case.parameters["radius"] == "median":
        radius = float(near.distances[:, FIFTH - 1].median())
    else:
        radius = float((MEAN / case.n * 3 / (4 * np.pi)) ** (1 / 3))
    lists = lists_by(method, points, radius)
    facts = {"proof": PROOF, "recall": 1.0} | proved(run, lists(), points, near, radius)
    del near
    ours, theirs = f"tonari {method} within", f"tonari {method} k = {case.k}"
    contestants = [Ours(run, name, call, case.n, case.n) for name, call in ((ours, lists), (theirs, nearest))]
    timings = race(contestants, run.repeats)
    mine = timings[ours]
    measured = {"seconds": mine.median, "k nearest": timings[theirs].median / mine.median}
    row = {"who": ours, "stage": "graph"} | facts | seconds_of(mine)
    rows = [row | verdict for verdict in run.verdicts(case.bars, measured)]
    rows.append({"who": theirs, "stage": "graph", "ratio": measured["k nearest"]} | seconds_of(timings[theirs]))
    run.write(case, rows)


def _case(name: str, d: int, k: int, method: str, radius: str, data: str, bar: Bar, **changes: Any) -> Case:
    parameters = {"method": method, "radius": radius}
    return Case(
        name,
        "cuda",
        MILLION,
        MILLION,
        d,
        k,
        graph,
        data=data,
        graph=True,
        parameters=parameters,
        bars=(bar,),
        **changes,
    )


_SLOWER = Bar("k nearest", 1 / 1.2, home="H200")

SUITE = Suite(
    "radius_cuda",
    "exact_cuda",
    (
        _case(
            "within-tree-d3", 3, 32, "kdtree", "even", "uniform", Bar("seconds", 8e-3, most=True, home="H200"), cost=40
        ),
        _case("within-gauss-d128", 128, 10, "exact", "median", "gaussian", _SLOWER, cost=90, gigabytes=20),
        _case("within-sift-d128", 128, 10, "exact", "median", "sift", _SLOWER, cost=90, gigabytes=20, rare=True),
    ),
    libraries=("tonari", "numpy", "torch", "triton"),
)
