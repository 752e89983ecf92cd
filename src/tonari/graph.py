"""The k-nearest-neighbour graph: a container, its quality, its export and its file."""

from __future__ import annotations

import json
import os
import zipfile
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from tonari.io._atomic import atomic
from tonari.metrics import get_metric
from tonari.quality import Recall, graph_recall

if TYPE_CHECKING:
    import scipy.sparse

_FORMAT = "tonari.KNNGraph"
_VERSION = 1


@dataclass(frozen=True, eq=False, repr=False)
class KNNGraph:
    """The k nearest neighbours of each of n points among the others.

    Attributes
    ----------
    indices : int32 or int64 of shape (n, k)
        Row i lists the neighbours of point i by (distance, index); -1 where missing, at the end.
    distances : float32 or float64 of shape (n, k)
        Of those neighbours, ascending (``inner_product``: similarities, descending); inf (-inf) where missing.
    metric : str
        A name in ``tonari.metrics.METRICS``.
    method : str
        How it was made.
    include_self : bool
        Whether column 0 is the point itself. If not, no row has its own point.
    seed : int, optional
        Of a method that draws random numbers.

    Raises
    ------
    TypeError
        The arrays have other dtypes.
    ValueError
        Shapes differ, an index is out of range, self is where it must not be or not where it must, or the metric is
        unknown.

    Examples
    --------
    >>> import numpy as np
    >>> from tonari.graph import KNNGraph
    >>> KNNGraph(np.array([[1], [0]], np.int32), np.array([[2.5], [2.5]], np.float32), "euclidean", "brute")
    KNNGraph(n=2, k=1, metric='euclidean', method='brute')
    """

    indices: npt.NDArray[Any]
    distances: npt.NDArray[Any]
    metric: str
    method: str
    include_self: bool = False
    seed: int | None = None

    def __post_init__(self) -> None:
        get_metric(self.metric)
        indices, distances = self.indices, self.distances
        if indices.dtype not in (np.int32, np.int64) or distances.dtype not in (np.float32, np.float64):
            raise TypeError(
                f"indices must be int32 or int64 and distances float32 or float64, "
                f"got {indices.dtype} and {distances.dtype}"
            )
        if indices.ndim != 2 or indices.shape != distances.shape or 0 in indices.shape:
            raise ValueError(
                f"indices and distances must be (n, k) alike and not empty, got {indices.shape} and {distances.shape}"
            )
        outside = ((indices < -1) | (indices >= self.n)).any(axis=1)
        if outside.any():
            raise ValueError(f"row {outside.argmax()} has an index that is not within -1 and {self.n - 1}")
        is_self = indices == np.arange(self.n)[:, None]
        if self.include_self:
            if not is_self[:, 0].all():
                raise ValueError(f"row {is_self[:, 0].argmin()} does not have its own point in column 0")
            is_self = is_self[:, 1:]
        if is_self.any():
            raise ValueError(f"row {is_self.any(axis=1).argmax()} has its own point among its neighbours")

    @property
    def n(self) -> int:
        """Number of points."""
        return int(self.indices.shape[0])

    @property
    def k(self) -> int:
        """Columns of each row, self included where it is there."""
        return int(self.indices.shape[1])

    def __repr__(self) -> str:
        also = f", seed={self.seed}" if self.seed is not None else ""
        also += ", include_self=True" if self.include_self else ""
        return f"KNNGraph(n={self.n}, k={self.k}, metric={self.metric!r}, method={self.method!r}{also})"

    def recall(self, points: Any, *, sample: int = 1000, seed: int = 0, threads: int | None = None) -> Recall:
        """Measure a random sample of rows against the exact answer; see :func:`tonari.quality.graph_recall`."""
        return graph_recall(self, points, sample=sample, seed=seed, threads=threads)

    def to_csr(
        self, *, order: Literal["distance", "index"] = "distance", include_self: bool | None = None
    ) -> scipy.sparse.csr_matrix:
        """Export the graph as a SciPy matrix whose entry (i, j) is the distance from i to its neighbour j.

        Distances of 0 are stored, missing neighbours are not. The matrix shares no memory with the graph.

        Parameters
        ----------
        order : "distance" or "index"
            Order within each row: as here, nearest first (scikit-learn, scanpy, UMAP), or by column number
            (readers that want canonical CSR).
        include_self : bool, optional
            True: every row has its own point, first where the order is by distance; where it is added its distance is
            0, and the row has k + 1 entries. False: it has not. None: as the graph has it.

        Returns
        -------
        scipy.sparse.csr_matrix of shape (n, n)

        Raises
        ------
        ImportError
            SciPy is not installed.
        ValueError
            Another order; or self is to be added to a graph of similarities, which does not know them.

        Examples
        --------
        >>> import numpy as np
        >>> from tonari.graph import KNNGraph
        >>> graph = KNNGraph(np.array([[1], [0]], np.int32), np.array([[2.5], [2.5]], np.float32), "l1", "brute")
        >>> graph.to_csr(include_self=True).indices  # point 0: itself, 1; point 1: itself, 0
        array([0, 1, 1, 0], dtype=int32)
        """
        try:
            from scipy.sparse import csr_matrix
        except ImportError as error:
            raise ImportError("to_csr needs SciPy: pip install 'tonari[sparse]'") from error
        if order not in ("distance", "index"):
            raise ValueError(f'order={order!r}: expected "distance" or "index"')
        indices, distances = self._with_self(self.include_self if include_self is None else include_self)
        present = indices >= 0
        # Entries can be more than 2**31 though points are fewer; SciPy narrows what fits in 32 bits.
        ends = np.cumsum(present.sum(axis=1, dtype=np.int64))
        matrix = csr_matrix((distances[present], indices[present], np.concatenate([[0], ends])), shape=(self.n, self.n))
        if order == "index":
            matrix.sort_indices()
        return matrix

    def _with_self(self, wanted: bool) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        if wanted == self.include_self:
            return self.indices, self.distances
        if not wanted:
            return self.indices[:, 1:], self.distances[:, 1:]
        if get_metric(self.metric).descending:
            raise ValueError(
                f"a graph of {self.metric} does not know how similar a point is to itself; "
                "build it with include_self=True"
            )
        own = np.arange(self.n, dtype=self.indices.dtype)[:, None]
        zero = np.zeros((self.n, 1), self.distances.dtype)
        return np.hstack([own, self.indices]), np.hstack([zero, self.distances])

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the graph to an uncompressed .npz file, whole or not at all; equal graphs give equal bytes.

        NumPy alone reads it too: arrays ``indices`` and ``distances``, and ``about``, the rest as JSON text.
        """
        about = {
            "format": _FORMAT,
            "version": _VERSION,
            "metric": self.metric,
            "method": self.method,
            "include_self": bool(self.include_self),
            "seed": None if self.seed is None else int(self.seed),
        }
        with atomic(path) as file:
            np.savez(file, about=np.array(json.dumps(about)), indices=self.indices, distances=self.distances)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> KNNGraph:
        """Read a graph that :meth:`save` wrote.

        Raises
        ------
        OSError
            The file cannot be opened.
        ValueError
            The file is damaged, is something else, or is of a later version of the format.
        """
        with open(path, "rb") as file:
            try:
                with np.load(file, allow_pickle=False) as archive:
                    about = json.loads(str(archive["about"]))
                    if about["format"] != _FORMAT:
                        raise ValueError(f"its format is {about['format']!r}")
                    if about["version"] != _VERSION:
                        raise ValueError(f"its format version is {about['version']}, this release reads {_VERSION}")
                    return cls(
                        archive["indices"],
                        archive["distances"],
                        metric=about["metric"],
                        method=about["method"],
                        include_self=about["include_self"],
                        seed=about["seed"],
                    )
            except _UNREADABLE as error:
                raise ValueError(f"{os.fspath(path)}: not a whole KNNGraph file: {error}") from error


# What NumPy, zipfile and json raise on bytes that are not what they expect: OSError for a place before the start of
# the file, RuntimeError for a flag that says it is encrypted.
_UNREADABLE = (
    ValueError,
    TypeError,
    KeyError,
    AttributeError,
    EOFError,
    OSError,
    RuntimeError,
    zipfile.BadZipFile,
)
