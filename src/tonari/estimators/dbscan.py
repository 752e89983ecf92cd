"""`tonari.estimators.DBSCAN`, and the connected components of the graph of its core rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from sklearn.base import ClusterMixin
from sklearn.utils.validation import _check_sample_weight

from tonari.api.one_radius import one_radius
from tonari.api.user_metrics.call import is_given
from tonari.core.errors import BudgetExceeded, Unsupported
from tonari.estimators.bases.searching import Searching
from tonari.estimators.predictions.blocks import Budget
from tonari.estimators.settings import check_radius
from tonari.inputs import check_count, parse_memory

Integers = npt.NDArray[np.integer[Any]]


class Components:
    """The connected components of n nodes under the edges that have been added so far.

    Attributes
    ----------
    of : int64 array of shape (n,)
        The component of each node, as an id from 0; ids are in ascending order of the components' first nodes.

    Examples
    --------
    >>> components = Components(5)
    >>> components.join(np.array([4, 3]), np.array([0, 2]))
    >>> components.of.tolist()
    [0, 1, 2, 2, 0]
    """

    def __init__(self, n: int) -> None:
        self.of: npt.NDArray[np.int64] = np.arange(n)
        self._count = n

    def join(self, left: Integers, right: Integers) -> None:
        """Add edges between nodes `left` and nodes `right`."""
        left, right = self.of[left], self.of[right]
        apart = left != right
        left, right = left[apart], right[apart]
        if not len(left):
            return
        edges = coo_array((np.ones(len(left), bool), (left, right)), shape=(self._count, self._count))
        self._count, merged = connected_components(edges, directed=False)
        _, first = np.unique(merged, return_index=True)
        places = np.empty(self._count, np.int64)
        places[np.argsort(first)] = np.arange(self._count)
        self.of = places[merged][self.of]


_ROW_BYTES = 128  # bytes per row for counts, weights, components and labels, which exist during the whole fit


class DBSCAN(ClusterMixin, Searching):
    """Cluster rows by density, exactly, with the interface of ``sklearn.cluster.DBSCAN``.

    A core row has at least `min_samples` rows within `eps`, including itself. Core rows within `eps` of each other are
    in the same cluster. Any other row belongs to a cluster if a core row of the cluster is within `eps`; a row without
    a core row within `eps` is noise.

    Parameters
    ----------
    eps : float
        Two rows are neighbours if their distance is at most this; for "sqeuclidean" it is compared with squared
        distances.
    min_samples : int
        The smallest number of neighbours of a core row, including itself; with weights, the smallest sum of their
        weights.
    metric, metric_params, algorithm, leaf_size, n_jobs, device
        As for :class:`NearestNeighbors`; callables and "precomputed" are refused.
    p : float, optional
        For ``metric="minkowski"``, as for :class:`NearestNeighbors`. None: 2.
    memory : int or str, optional
        Maximum bytes beyond X and the attributes. Only the lists of one block of rows are in memory at a time; by
        default, their total length has a limit.

    Attributes
    ----------
    core_sample_indices_ : int64 of shape (n_core_samples,)
        Row numbers of core rows, ascending.
    components_ : array of shape (n_core_samples, n_features)
        Copy of the core rows.
    labels_ : int64 of shape (n_samples,)
        The cluster of each row, -1 for noise. Clusters are in order of their first core rows; a row that is within
        `eps` of several clusters has the smallest label, as in scikit-learn.
    n_features_in_, feature_names_in_, effective_metric_
        As for :class:`NearestNeighbors`.

    Notes
    -----
    :meth:`fit` counts the neighbours of each row first, without computing most distances. It then finds all pairs of
    neighbours in blocks, and joins core rows into clusters. Last, it finds the neighbours of the other rows.

    Examples
    --------
    >>> import numpy as np
    >>> from tonari.estimators import DBSCAN
    >>> X = np.array([[1, 2], [2, 2], [2, 3], [8, 7], [8, 8], [25, 80]])
    >>> DBSCAN(eps=3, min_samples=2).fit(X).labels_.tolist()
    [0, 0, 0, 1, 1, -1]
    """

    def __init__(
        self,
        eps: float = 0.5,
        *,
        min_samples: int = 5,
        metric: str = "euclidean",
        metric_params: dict[str, Any] | None = None,
        algorithm: str = "auto",
        leaf_size: int = 30,
        p: float | None = None,
        n_jobs: int | None = None,
        device: Any = "auto",
        memory: int | str | None = None,
    ) -> None:
        self.eps, self.min_samples = eps, min_samples
        self._set(algorithm, leaf_size, metric, p, metric_params, n_jobs, device, memory)

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> DBSCAN:
        """Cluster rows by density; the result is in the attributes.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
        y : ignored
        sample_weight : array of shape (n_samples,), optional
            The weight of each row. A negative weight may prevent a neighbour from being a core row. Default: all 1.

        Raises
        ------
        ValueError
            A parameter has no counterpart in tonari, or X is not finite.
        tonari.core.errors.BudgetExceeded
            `memory` is too small; the message says how much is needed.
        """
        if is_given(self.metric):
            raise Unsupported(
                f"metric={self.metric!r}: distances of the caller are not clustered here; use "
                "sklearn.cluster.DBSCAN, or name a metric"
            )
        self._keep(X)
        rows = self._rows.array
        del self._rows  # never searched again, since DBSCAN does not predict
        weights = None if sample_weight is None else _check_sample_weight(sample_weight, rows)
        clustering = _Clustering(rows, self._how(), float(self.eps), parse_memory(self.memory))
        core = clustering.core_rows(self.min_samples, weights)
        self.core_sample_indices_ = np.flatnonzero(core)
        self.labels_ = clustering.labels(core)
        self.components_ = rows[self.core_sample_indices_]
        return self

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> npt.NDArray[np.int64]:
        """Cluster rows and return ``labels_``; see :meth:`fit`."""
        return self.fit(X, sample_weight=sample_weight).labels_

    def _check_sizes(self) -> None:
        check_radius(self.eps, "eps", positive=True)
        check_count(self.min_samples, "min_samples")


class _Clustering:
    """The rows of one call of fit, prepared for searches within `eps`, and the number of neighbours of each row."""

    def __init__(self, rows: Any, how: dict[str, Any], eps: float, memory: int | None) -> None:
        n = rows.shape[0]
        self._budget = Budget(memory, _ROW_BYTES * n)
        if memory is not None and memory <= self._budget.fixed:
            least = 2 * self._budget.fixed
            raise BudgetExceeded(
                f"memory={memory}: {n} rows take {self._budget.fixed} bytes before a search; allow at least {least}",
                least=least,
            )
        with self._budget.refusals():
            self._rows = one_radius(rows, eps, **how | {"memory": self._budget.searching})
            self._counts = self._rows.counts()

    def core_rows(self, min_samples: int, weights: npt.NDArray[Any] | None) -> npt.NDArray[np.bool_]:
        """Return a mask of the rows whose number of neighbours, or sum of their weights, is at least `min_samples`."""
        if weights is None:
            core: npt.NDArray[np.bool_] = self._counts >= min_samples
            return core
        sums = np.zeros(len(self._counts))
        for own, others in self._lists(np.arange(len(sums))):
            np.add.at(sums, own, weights[others])
        return sums >= min_samples

    def labels(self, core: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
        """Return the cluster of each row, -1 for noise, from the mask of core rows."""
        ids = np.flatnonzero(core)
        labels = np.full(len(core), len(ids))  # rows without a cluster have a label above all ids
        components, place = Components(len(ids)), np.cumsum(core) - 1
        for left, right in self._pairs():
            both = core[left] & core[right]
            components.join(place[left[both]], place[right[both]])
        labels[ids] = components.of
        for own, others in self._lists(np.flatnonzero(~core & (self._counts > 1))):
            near = core[others]
            np.minimum.at(labels, own[near], labels[others[near]])
        labels[labels == len(ids)] = -1
        return labels

    def _lists(
        self, ids: npt.NDArray[np.int64]
    ) -> Iterator[tuple[npt.NDArray[np.int64], npt.NDArray[np.integer[Any]]]]:
        """Yield, block by block, all pairs of a row in `ids` and a neighbour of it, as two arrays of row numbers."""
        for part in self._budget.blocks(self._counts[ids], self._rows.row_bytes):
            with self._budget.refusals():
                found = self._rows.lists(ids[part])
            yield np.repeat(ids[part], np.diff(found.indptr)), found.indices

    def _pairs(self) -> Iterator[tuple[npt.NDArray[np.integer[Any]], npt.NDArray[np.integer[Any]]]]:
        """Yield, block by block, all pairs of neighbours, each pair once, as two arrays of row numbers."""
        for part in self._budget.blocks(self._counts):
            with self._budget.refusals():
                found = self._rows.pairs(part)
            yield found.left, found.right
