"""Drop-ins for FAISS's IndexIDMap and IndexIDMap2, whose rows have the caller's own ids."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tonari import inputs
from tonari.compat.arguments import numbers_of
from tonari.compat.faiss.arguments import ids_of
from tonari.compat.faiss.index_flat import IndexFlat
from tonari.core.hints import Hinted
from tonari.core.process.compiling import not_compiled


class IndexIDMap(Hinted):
    """A flat index whose rows have ids, with the interface of ``faiss.IndexIDMap``.

    Parameters
    ----------
    index : IndexFlat
        An empty index, which gets the rows.

    Attributes
    ----------
    index : IndexFlat
    id_map : int64 array of shape (ntotal,)
        The id of each row.
    d, ntotal, metric_type, is_trained, verbose
        As for :class:`IndexFlat`.

    Examples
    --------
    >>> from tonari.compat import faiss
    >>> index = faiss.IndexIDMap(faiss.IndexFlatL2(1))
    >>> index.add_with_ids([[0.0], [5.0]], [70, 90])
    >>> index.search([[4.0]], k=3)[1].tolist()
    [[90, 70, -1]]
    >>> index.remove_ids([90])
    1
    """

    is_trained = True

    @not_compiled
    def __init__(self, index: Any) -> None:
        if not isinstance(index, IndexFlat):
            raise TypeError(f"index: expected a flat index of tonari.compat.faiss, got {type(index).__name__}")
        if index.ntotal:
            raise ValueError(f"index: has {index.ntotal} rows, expected an empty index; add rows by add_with_ids")
        self.index = index
        self.id_map = np.empty(0, np.int64)
        self.verbose = False

    def __len__(self) -> int:
        return self.ntotal

    @property
    def d(self) -> int:
        """Number of columns."""
        return self.index.d

    @property
    def ntotal(self) -> int:
        """Number of rows."""
        return self.index.ntotal

    @property
    def metric_type(self) -> int:
        """FAISS's number of the metric."""
        return self.index.metric_type

    @not_compiled
    def train(self, x: Any) -> None:
        """Check the rows and do nothing else, as a flat index needs no training."""
        self.index.train(x)

    @not_compiled
    def add(self, x: Any) -> None:
        """Raise an error, as FAISS does: rows need ids, see :meth:`add_with_ids`."""
        raise TypeError("add: this index has ids, expected add_with_ids(x, ids)")

    @not_compiled
    def add_with_ids(self, x: Any, ids: Any) -> None:
        """Append rows of shape (n, d), with ids of shape (n,): whole numbers, which may repeat."""
        numbers = ids_of(ids, "ids")
        rows = numbers_of(x, "x", "(n, d)")
        if rows.ndim == 2 and len(rows) != len(numbers):
            raise ValueError(f"ids: has {len(numbers)} numbers, expected {len(rows)}: one for each row of x")
        self.index.add(rows)
        self.id_map = np.concatenate([self.id_map, numbers])

    @not_compiled
    def search(self, x: Any, k: int, *, params: None = None) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]]:
        """Find the k nearest rows as :meth:`IndexFlat.search` does; I has their ids, -1 for missing neighbours."""
        D, I = self.index.search(x, k, params=params)  # noqa: E741, as FAISS calls them
        return D, np.append(self.id_map, -1)[I]

    @not_compiled
    def range_search(
        self, x: Any, thresh: float, *, params: None = None
    ) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.float32], npt.NDArray[np.int64]]:
        """Find all rows within a threshold as :meth:`IndexFlat.range_search` does; I has their ids."""
        lims, D, I = self.index.range_search(x, thresh, params=params)  # noqa: E741
        return lims, D, self.id_map[I]

    @not_compiled
    def remove_ids(self, x: Any) -> int:
        """Remove all rows whose id is in an array of shape (n,), and return the number of removed rows."""
        removed = np.isin(self.id_map, ids_of(x, "x"))
        count = self.index.remove_ids(np.flatnonzero(removed))
        self.id_map = self.id_map[~removed]
        return count

    @not_compiled
    def reset(self) -> None:
        """Remove all rows."""
        self.index.reset()
        self.id_map = np.empty(0, np.int64)


class IndexIDMap2(IndexIDMap):
    """An :class:`IndexIDMap` that also returns rows by their ids."""

    @not_compiled
    def reconstruct(self, key: int) -> npt.NDArray[np.float32]:
        """Return the row with this id, of shape (d,); if several rows share the id, the last added one."""
        wanted = inputs.check_count(key, "key", least=-(2**63))
        places = np.flatnonzero(self.id_map == wanted)
        if not len(places):
            raise ValueError(f"key={key}: no row has this id")
        return self.index.reconstruct(int(places[-1]))
