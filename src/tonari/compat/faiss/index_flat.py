"""Drop-ins for FAISS's flat indexes: IndexFlat, IndexFlatL2 and IndexFlatIP."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tonari import inputs
from tonari.api.index.index import Index
from tonari.compat.arguments import leave_out, number_of
from tonari.compat.faiss.arguments import METRIC_INNER_PRODUCT, METRIC_L2, filled, ids_of, metric_of, padded, rows_of
from tonari.compat.faiss.nearest import threads
from tonari.core.hints import Hinted
from tonari.core.process.compiling import not_compiled
from tonari.metrics import METRICS


class IndexFlat(Hinted):
    """A flat index with the interface of ``faiss.IndexFlat``; see :mod:`tonari.compat.faiss`.

    Parameters
    ----------
    d : int
        Number of columns.
    metric : int
        FAISS's number of the metric, such as ``METRIC_L2``.

    Attributes
    ----------
    d, ntotal : int
        Number of columns and of rows.
    metric_type : int
    is_trained : bool
        True.
    verbose : bool

    Examples
    --------
    >>> from tonari.compat import faiss
    >>> import numpy as np
    >>> index = faiss.IndexFlatL2(2)
    >>> index.add(np.array([[0.0, 0.0], [3.0, 4.0]]))
    >>> D, I = index.search(np.array([[0.0, 1.0]]), k=3)
    >>> D[:, :2].tolist(), I.tolist()
    ([[1.0, 18.0]], [[0, 1, -1]])
    """

    is_trained = True

    @not_compiled
    def __init__(self, d: int, metric: int = METRIC_L2) -> None:
        self.d = inputs.check_count(d, "d")
        self._metric = metric_of(metric)
        self.metric_type = int(metric)
        self.verbose = False
        self.reset()

    def __len__(self) -> int:
        return self.ntotal

    @not_compiled
    def reset(self) -> None:
        """Remove all rows."""
        self.ntotal = 0
        self._parts: list[npt.NDArray[np.float32]] = []
        self._index: Index | None = None

    @not_compiled
    def train(self, x: Any) -> None:
        """Check the rows and do nothing else, as a flat index needs no training."""
        rows_of(x, "x", width=self.d)

    @not_compiled
    def add(self, x: Any) -> None:
        """Append a copy of rows of shape (n, d)."""
        rows = rows_of(x, "x", width=self.d)
        if len(rows):
            self._parts.append(rows.copy())
            self.ntotal += len(rows)
            self._index = None

    def _all(self) -> npt.NDArray[np.float32]:
        """Return all added rows as one array, concatenated on first use."""
        if len(self._parts) != 1:
            self._parts = [np.concatenate([np.empty((0, self.d), np.float32), *self._parts])]
        return self._parts[0]

    def _prepared(self) -> Index:
        if self._index is None:
            self._index = Index(self._all(), metric=self._metric)
        return self._index

    @not_compiled
    def search(self, x: Any, k: int, *, params: None = None) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]]:
        """Find the k nearest rows for each row of x, of shape (n, d); return D and I as :func:`knn` does."""
        no_params(params)
        queries, k = rows_of(x, "x", width=self.d), inputs.check_count(k, "k")
        if not len(queries) or not self.ntotal:
            return filled(len(queries), k, self._metric)
        return padded(self._prepared().search(queries, min(k, self.ntotal), threads=threads()), k, self._metric)

    @not_compiled
    def range_search(
        self, x: Any, thresh: float, *, params: None = None
    ) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.float32], npt.NDArray[np.int64]]:
        """Find all rows whose distance is less than a threshold, or whose inner product is greater than it.

        Parameters
        ----------
        x : array of shape (n, d)
        thresh : float
            For ``METRIC_L2`` a squared distance.
        params : None

        Returns
        -------
        lims : uint64 array of shape (n + 1,)
            The results of row i of x are ``D[lims[i]:lims[i + 1]]`` and ``I[lims[i]:lims[i + 1]]``.
        D : float32 array of shape (lims[n],)
            Distances or inner products, nearest first.
        I : int64 array of shape (lims[n],)
        """
        no_params(params)
        queries = rows_of(x, "x", width=self.d)
        limit = float(np.float32(number_of(thresh, "thresh")))
        descending = METRICS[self._metric].descending
        if descending and np.isinf(limit):
            raise ValueError(f"thresh={thresh!r}: expected a finite number for inner products")
        if not len(queries) or not self.ntotal or (limit <= 0 and not descending):
            return np.zeros(len(queries) + 1, np.uint64), np.empty(0, np.float32), np.empty(0, np.int64)
        within: dict[str, Any] = {"min_similarity" if descending else "radius": limit}
        found = self._prepared().radius_search(queries, **within, closed=False, threads=threads())
        return found.indptr.astype(np.uint64), found.distances, found.indices.astype(np.int64)

    @not_compiled
    def remove_ids(self, x: Any) -> int:
        """Remove the rows at these row numbers, renumber the rows after them, and return how many rows were removed."""
        numbers = ids_of(x, "x")
        staying = np.ones(self.ntotal, bool)
        staying[numbers[(numbers >= 0) & (numbers < self.ntotal)]] = False
        removed = self.ntotal - int(np.count_nonzero(staying))
        if removed:
            self._parts, self._index = [self._all()[staying]], None
            self.ntotal -= removed
        return removed

    @not_compiled
    def reconstruct(self, key: int) -> npt.NDArray[np.float32]:
        """Return the row at this row number, of shape (d,)."""
        at = inputs.check_count(key, "key", least=0)
        if at >= self.ntotal:
            raise ValueError(f"key={key}: the index has rows 0 to {self.ntotal - 1}, {self.ntotal} in all")
        row: npt.NDArray[np.float32] = self._all()[at].copy()
        return row

    @not_compiled
    def reconstruct_n(self, n0: int = 0, ni: int = -1) -> npt.NDArray[np.float32]:
        """Return `ni` rows, starting with row `n0`; with ``ni=-1`` all rows from `n0` to the end."""
        begin, count = inputs.check_count(n0, "n0", least=0), inputs.check_count(ni, "ni", least=-1)
        end = self.ntotal if count == -1 else begin + count
        if max(begin, end) > self.ntotal:
            raise ValueError(f"n0={n0}, ni={ni}: the index has {self.ntotal} rows")
        return self._all()[begin:end].copy()


class IndexFlatL2(IndexFlat):
    """:class:`IndexFlat` with squared Euclidean distances."""

    @not_compiled
    def __init__(self, d: int) -> None:
        super().__init__(d, METRIC_L2)


class IndexFlatIP(IndexFlat):
    """:class:`IndexFlat` with inner products."""

    @not_compiled
    def __init__(self, d: int) -> None:
        super().__init__(d, METRIC_INNER_PRODUCT)


def no_params(params: Any) -> None:
    """Refuse the argument `params` of a search, FAISS's SearchParameters, unless it is None."""
    leave_out(params, None, "params", "use where= and exclude= of tonari.search")
