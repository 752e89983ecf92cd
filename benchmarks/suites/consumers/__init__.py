"""Calls by users of scikit-learn, UMAP and astropy, timed with tonari and with the library that they use today.

================  ====================================================================================================
``transformer``   KNeighborsTransformer.fit_transform
``grid-*``        GridSearchCV of KNeighborsClassifier; most of the time is scikit-learn's own work, for both
``radius``        NearestNeighbors.radius_neighbors
``outliers``      LocalOutlierFactor
``dbscan*``       DBSCAN
``gaps``          NearestNeighbors by nan_euclidean, of rows with missing values
``imputer``       KNNImputer
``umap``          the neighbours that UMAP(n_neighbors=15) begins with; the peer is pynndescent with the arguments that
                  umap-learn passes to it, compiled before the clock starts
``umap-sift``     the same for real descriptors; pynndescent is also timed with its own defaults
``umap-first``    the same in a fresh process, imports included; numba loads a part of pynndescent's compiled code from
                  its cache on disk, and compiles the rest
``sky-match``     match_coordinates_sky of two catalogues
``sky-around``    search_around_sky within ten arcminutes
================  ====================================================================================================
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ...harness.case import Bar, Case, Suite
from ...harness.peers.estimators import CLUSTERS, IMPUTER, OUTLIERS, RADIUS, SKLEARN
from ...harness.run import Run
from . import density, estimators, sky, umap

D = 50
QUERIES = 256  # number of queries whose predicted classes are compared


def workload(run: Run, case: Case) -> Callable[[], Any]:
    """Return a function that runs a case once; comparisons of two versions time it."""
    calls = {
        estimators.transform: estimators.transform_call,
        estimators.grid: estimators.grid_call,
        density.fitted: density.call,
        sky.match: sky.version_call,
    }
    return calls.get(case.work, umap.call)(run, case)


def _case(name: str, n: int, k: int, peer: str, *bars: Bar, m: int = 0, **more: Any) -> Case:
    shared: dict[str, Any] = {"d": D, "data": "mixture", "graph": not m, "peers": (peer,)}
    return Case(name, "cpu", n, m or n, k=k, bars=bars, **shared | more)


def _fitted(name: str, n: int, d: int, estimator: str, **parameters: Any) -> Case:
    given = {"estimator": estimator} | parameters
    shared: dict[str, Any] = {"data": "blobs", "dtype": "float64", "graph": True, "peers": (SKLEARN,)}
    k, bars = parameters.get("n_neighbors", 0), (_bar(SKLEARN, 1.0),)
    return Case(name, "cpu", n, n, d, k, bars=bars, parameters=given, work=density.fitted, **shared)


def _with_gaps(name: str, n: int, d: int, bound: float, estimator: str, **parameters: Any) -> Case:
    made = _fitted(name, n, d, estimator, **parameters)
    return replace(made, data="gaps", bars=(_bar(SKLEARN, bound),))


def _bar(on: str, bound: float) -> Bar:
    return Bar(on, bound, home="")


_UMAP = (_bar(umap.BESIDE_EXACT, 1.0), _bar(umap.BESIDE_RECALL, 2.0), _bar(umap.OF_RECALL, 1.0))

SUITE = Suite(
    "consumers",
    "consumers",
    (
        _case("transformer", 70_000, 15, SKLEARN, _bar(SKLEARN, 5.0), work=estimators.transform, cost=60.0),
        *(
            _case(
                f"grid-{n}", n, max(estimators.CANDIDATES), SKLEARN, _bar(SKLEARN, 1.0), m=QUERIES, work=estimators.grid
            )
            for n in (100, 1_000, 10_000)
        ),
        _fitted("radius", 20_000, 3, RADIUS, radius=0.2),
        _fitted("outliers", 20_000, 32, OUTLIERS, n_neighbors=20),
        _fitted("dbscan", 50_000, 3, CLUSTERS, eps=0.15, min_samples=5),
        _fitted("dbscan-32d", 20_000, 32, CLUSTERS, eps=2.0, min_samples=5),
        _with_gaps("gaps", 20_000, 100, 8.0, RADIUS, n_neighbors=10, metric="nan_euclidean"),
        _with_gaps("imputer", 5_000, 50, 5.0, IMPUTER, n_neighbors=5),
        _case("umap", 60_000, 14, umap.PYNNDESCENT, *_UMAP, work=umap.layout, cost=60.0),
        _case("umap-sift", 60_000, 14, umap.PYNNDESCENT, *_UMAP, data="sift", work=umap.layout, cost=60.0),
        _case(
            *("umap-sift-defaults", 60_000, 14, umap.PYNNDESCENT, *_UMAP),
            data="sift",
            parameters={"defaults": True},
            work=umap.layout,
            cost=60.0,
        ),
        _case("umap-first", 60_000, 14, umap.PYNNDESCENT, _bar(umap.PYNNDESCENT, 1.0), work=umap.first, cost=120.0),
        *(
            _case(
                *(name, 100_000, 1, sky.ASTROPY, _bar(sky.ASTROPY, 1.0)),
                m=100_000,
                d=2,
                data="sphere",
                dtype="float64",
                metric="haversine",
                parameters=parameters,
                work=sky.match,
                cost=10.0,
            )
            for name, parameters in (("sky-match", {}), ("sky-around", {"arcminutes": 10.0}))
        ),
    ),
    libraries=("tonari", "numpy", "scikit-learn", "pynndescent", "numba", "astropy", "scipy"),
    workload=workload,
)
