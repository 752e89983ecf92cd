"""scikit-learn's estimators and tonari's, which have the same interface, each in its own process with the same data.

Both are called by the same code. Most of the time of a grid search is spent in scikit-learn itself, outside of the
estimators. This time depends on the modules that a process has loaded, so it is equal for both only in processes that
have loaded the same modules. scikit-learn runs with the OpenBLAS kernels that a measurement finds to be the fastest
(``cpu.fastest_blas_core``).
"""

from __future__ import annotations

import importlib
import tempfile
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .. import children

OURS, SKLEARN = "tonari", "sklearn"
MODULES = {OURS: ("tonari.estimators",), SKLEARN: ("sklearn.neighbors", "sklearn.cluster", "sklearn.impute")}
# The estimators that `fit` accepts.
RADIUS, OUTLIERS, CLUSTERS, IMPUTER = "NearestNeighbors", "LocalOutlierFactor", "DBSCAN", "KNNImputer"


class Searched(NamedTuple):
    """A grid search's result: the mean scores of the candidates, the best candidate, and the classes it predicts."""

    scores: Any
    best: int
    classes: Any


def missing() -> str | None:
    """Return the reason why the estimators cannot run, or None."""
    return None if find_spec(SKLEARN) else f"skipped: module {SKLEARN!r} is not installed"


class Estimators:
    """A process that runs one library's estimators on points, queries and labels; a context manager."""

    def __init__(
        self, name: str, points: Any, threads: int, blas_core: str | None, *, queries: Any = None, labels: Any = None
    ) -> None:
        self._folder = tempfile.TemporaryDirectory()
        path = Path(self._folder.name) / "data.npz"
        np.savez(path, **{key: rows for key, rows in _named(points, queries, labels).items() if rows is not None})
        variables = children.blas_environment(threads, blas_core)
        self._child = children.Child(_serve, MODULES[name], str(path), variables=variables)

    def transform(self, n_neighbors: int) -> None:
        """Build the k-NN graph of the points with KNeighborsTransformer."""
        self._child.ask(("transform", n_neighbors))

    def lists(self, rows: Any) -> tuple[Any, Any]:
        """Return the distances and indices in `rows` of the last graph, in the order of the entries in its matrix."""
        found: tuple[Any, Any] = self._child.ask(("lists", rows))
        return found

    def search(self, candidates: Sequence[int], folds: int, loops: int) -> None:
        """Run a grid search for the best n_neighbors of KNeighborsClassifier, ``loops`` times in succession."""
        self._child.ask(("search", (candidates, folds, loops)))

    def searched(self) -> Searched:
        """Return the result of the last grid search."""
        found: Searched = self._child.ask(("searched", None))
        return found

    def fit(self, name: str, parameters: Mapping[str, Any]) -> None:
        """Fit the estimator with this name to the points.

        RADIUS also finds neighbours of each point: the `n_neighbors` nearest if that is a parameter, else all within
        the radius. IMPUTER also fills the missing values of the points.
        """
        self._child.ask(("fit", (name, dict(parameters))))

    def fitted(self) -> tuple[Any, ...]:
        """Return the results of the last fitted estimator.

        RADIUS: the lengths of all lists, and their entries' distances and indices, sorted by (distance, index);
        OUTLIERS: negative outlier factors; CLUSTERS: labels and row numbers of core points; IMPUTER: the filled points.
        """
        found: tuple[Any, ...] = self._child.ask(("fitted", None))
        return found

    def __enter__(self) -> Estimators:
        return self

    def __exit__(self, *_: object) -> None:
        self._child.close()
        self._folder.cleanup()


def _named(points: Any, queries: Any, labels: Any) -> dict[str, Any]:
    return {"points": points, "queries": queries, "labels": labels}


def _class(modules: Sequence[str], name: str) -> Any:
    """Return the class `name` from the first of the modules that contains it."""
    found = (getattr(importlib.import_module(module), name, None) for module in modules)
    return next(each for each in found if each is not None)


def _found(estimator: Any) -> tuple[Any, ...]:
    """Return the arrays that ``Estimators.fitted`` documents; for RADIUS, still as a matrix or as lists."""
    if isinstance(estimator, np.ndarray):
        return (estimator,)
    if isinstance(estimator, tuple):
        distances, indices = estimator
        lengths = np.array([len(each) for each in indices])
        rows = np.repeat(np.arange(len(lengths)), lengths)
        distances, indices = np.concatenate(list(distances)), np.concatenate(list(indices))
        order = np.lexsort((indices, distances, rows))
        return lengths, distances[order], indices[order]
    if hasattr(estimator, "labels_"):
        return estimator.labels_, estimator.core_sample_indices_
    return (estimator.negative_outlier_factor_,)


def _serve(connection: Connection, modules: Sequence[str], path: str) -> None:
    from sklearn.model_selection import GridSearchCV

    with np.load(path) as file:
        held = {name: file[name] for name in file.files}
    points = held["points"]
    kept: Any = None
    while True:
        verb, value = connection.recv()
        answer: Any = None
        if verb == "transform":
            kept = None
            kept = _class(modules, "KNeighborsTransformer")(n_neighbors=value, n_jobs=-1).fit_transform(points)
        elif verb == "lists":
            # scikit-learn does not promise an order of a matrix's entries, but stores them in the order of its lists
            entries = kept.indptr[value][:, None] + np.arange(kept.indptr[1])
            answer = kept.data[entries], kept.indices[entries]
        elif verb == "search":
            candidates, folds, loops = value
            for _ in range(loops):
                classifier = _class(modules, "KNeighborsClassifier")()
                grid = GridSearchCV(classifier, {"n_neighbors": list(candidates)}, cv=folds)
                kept = grid.fit(points, held["labels"])
        elif verb == "fit":
            kept = None
            name, parameters = value
            if name == IMPUTER:
                kept = _class(modules, name)(**parameters).fit_transform(points)
            else:
                kept = _class(modules, name)(**parameters, n_jobs=-1).fit(points)
            if name == RADIUS:
                kept = kept.kneighbors() if "n_neighbors" in parameters else kept.radius_neighbors(points)
        elif verb == "fitted":
            answer = _found(kept)
        else:
            scores = kept.cv_results_["mean_test_score"]
            answer = Searched(scores, int(kept.best_params_["n_neighbors"]), kept.predict(held["queries"]))
        connection.send(("reply", answer))
