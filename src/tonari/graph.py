"""The k-nearest-neighbour graph: a container, its quality, its export and its file."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from tonari import arrays
from tonari.descent.report import DescentReport
from tonari.io._atomic import atomic
from tonari.io._common import FileFormatError, expansion, reason
from tonari.io.npz import Archive
from tonari.metrics import get_metric
from tonari.progress import ProgressLike
from tonari.quality import Recall, graph_recall

if TYPE_CHECKING:
    import scipy.sparse

_FORMAT = "tonari.KNNGraph"
_VERSION = 1


@dataclass(frozen=True, eq=False, repr=False)
class KNNGraph:
    """The k nearest neighbours of each of n points among the others.

    Arrays are NumPy's, or lie on CUDA: torch tensors, CuPy or JAX arrays, as :func:`tonari.knn_graph` makes of points
    there. Of those only shapes and dtypes are checked, since to know their values would be to wait for the device;
    :meth:`to_numpy` checks the rest.

    Attributes
    ----------
    indices : int32 or int64 of shape (n, k)
        Row i lists the neighbours of point i by (distance, index); -1 where missing, at the end.
    distances : float32 or float64 of shape (n, k)
        Of those neighbours, ascending (``inner_product``: similarities, descending); inf (-inf) where missing.
    metric : str
        A name in ``tonari.metrics.METRICS``.
    method : str
        How it was made: "exact" or "kdtree", which are equally exact, or "nn-descent", by :func:`tonari.knn_graph` or
        :func:`tonari.merge`.
    include_self : bool
        Whether column 0 is the point itself. If not, no row has its own point.
    seed : int, optional
        Of a method that draws random numbers.
    report : tonari.descent.report.DescentReport, optional
        Of an approximate graph: its recall, as a sample tells, and the rounds that it took.

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

    indices: Any
    distances: Any
    metric: str
    method: str
    include_self: bool = False
    seed: int | None = None
    report: DescentReport | None = None

    def __post_init__(self) -> None:
        get_metric(self.metric)
        indices, distances = self.indices, self.distances
        dtypes = arrays.name_of_dtype(indices), arrays.name_of_dtype(distances)
        if dtypes[0] not in ("int32", "int64") or dtypes[1] not in ("float32", "float64"):
            raise TypeError(
                f"indices must be int32 or int64 and distances float32 or float64, got {dtypes[0]} and {dtypes[1]}"
            )
        shapes = tuple(indices.shape), tuple(distances.shape)
        if len(shapes[0]) != 2 or shapes[0] != shapes[1] or 0 in shapes[0]:
            raise ValueError(
                f"indices and distances must be (n, k) alike and not empty, got {shapes[0]} and {shapes[1]}"
            )
        places = arrays.place_of(indices, "indices"), arrays.place_of(distances, "distances")
        if places[0] != places[1]:
            here, there = (place or "host memory" for place in places)
            raise ValueError(f"indices are in {here} and distances in {there}: they must lie together")
        if places[0] is not None:
            return
        if not isinstance(indices, np.ndarray) or not isinstance(distances, np.ndarray):
            raise TypeError("indices and distances in host memory must be NumPy arrays; use .numpy()")
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

    def to_numpy(self) -> KNNGraph:
        """The graph in NumPy arrays, copied from the device if it lies there; a graph that has them is its own.

        >>> import numpy as np
        >>> from tonari.graph import KNNGraph
        >>> graph = KNNGraph(np.array([[1], [0]], np.int32), np.array([[2.5], [2.5]], np.float32), "l1", "brute")
        >>> graph.to_numpy() is graph
        True
        """
        if arrays.place_of(self.indices, "indices") is None:
            return self
        indices, distances = (arrays.to_host(part).numpy() for part in (self.indices, self.distances))
        return dataclasses.replace(self, indices=indices, distances=distances)

    def recall(self, points: Any, *, sample: int = 1000, seed: int = 0, threads: int | None = None) -> Recall:
        """Measure a random sample of rows, on the CPU, against the exact answer; see :mod:`tonari.quality`."""
        return graph_recall(self, points, sample=sample, seed=seed, threads=threads)

    def add(
        self,
        points: Any,
        new_points: Any,
        *,
        recall: float = 0.99,
        seed: int = 0,
        device: str | Sequence[str] = "auto",
        threads: int | None = None,
        memory: int | str | None = None,
        progress: ProgressLike = None,
    ) -> KNNGraph:
        """The graph of more points: those that it is of, and new ones after them.

        Few new points are searched exactly; many become a graph of their own, which is merged with this one.

        Parameters
        ----------
        points : array of shape (n, d)
            Those that the graph is of.
        new_points : array of shape (m, d)
            Of the same dtype.
        recall, seed, device, threads, memory, progress
            As for :func:`tonari.merge`.

        Returns
        -------
        KNNGraph of n + m points
            The new ones have the numbers from n on.

        Examples
        --------
        >>> import numpy as np, tonari
        >>> line = np.array([[0.0], [1.0], [3.0]], dtype=np.float32)
        >>> tonari.knn_graph(line[:2], k=1).add(line[:2], line[2:]).indices.ravel().tolist()
        [1, 0, 1]
        """
        from tonari.descent.merge import add

        given: dict[str, Any] = {"device": device, "threads": threads, "memory": memory, "progress": progress}
        return add(self, points, new_points, recall=recall, seed=seed, **given)

    def to_csr(
        self, *, order: Literal["distance", "index"] = "distance", include_self: bool | None = None
    ) -> scipy.sparse.csr_matrix:
        """Export the graph as a SciPy matrix whose entry (i, j) is the distance from i to its neighbour j.

        Distances of 0 are stored, missing neighbours are not. The matrix shares no memory with the graph; one that lies
        on CUDA is copied to host memory.

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
        graph = self.to_numpy()
        indices, distances = graph._with_self(self.include_self if include_self is None else include_self)
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

        NumPy alone reads it too: arrays ``indices`` and ``distances``, and ``about``, the rest as JSON text. A graph on
        CUDA is copied to host memory, and comes back from the file as NumPy arrays.
        """
        graph = self.to_numpy()
        about: dict[str, Any] = {
            "format": _FORMAT,
            "version": _VERSION,
            "metric": self.metric,
            "method": self.method,
            "include_self": bool(self.include_self),
            "seed": None if self.seed is None else int(self.seed),
        }
        if self.report is not None:
            about["report"] = self.report.as_dict()
        with atomic(path) as file:
            np.savez(file, about=np.array(json.dumps(about)), indices=graph.indices, distances=graph.distances)

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, max_expansion: float | None = None) -> KNNGraph:
        """Read a graph that :meth:`save` wrote.

        Parameters
        ----------
        path : path
        max_expansion : float, optional
            How many times the bytes of the file an array may take in memory, as for :func:`tonari.io.read`.

        Raises
        ------
        OSError
            The file cannot be opened.
        tonari.io.FileFormatError
            The file is damaged, is something else, is of a later version of the format, or holds more than
            `max_expansion` allows. A ValueError, with path, bytes found and bytes expected.
        MemoryError
            A whole file does not fit into memory.
        """
        path, most = Path(path), expansion(max_expansion)
        not_whole = f"{path}: not a whole KNNGraph file: "
        try:
            with Archive(path, most) as archive:
                text, indices, distances = archive.text("about"), archive.matrix("indices"), archive.matrix("distances")
        except FileFormatError as error:
            detail = str(error).removeprefix(str(path)).lstrip(":, ")
            raise FileFormatError(not_whole + detail, path, error.found, error.expected) from error
        try:
            about = json.loads(text)
            if about["format"] != _FORMAT:
                raise ValueError(f"its format is {about['format']!r}")
            if about["version"] != _VERSION:
                raise ValueError(f"its format version is {about['version']}, this release reads {_VERSION}")
            for name, kind in (("method", str), ("include_self", bool), ("seed", int | None)):
                if not isinstance(about[name], kind):
                    raise ValueError(f"its {name} is {about[name]!r}")
            return cls(
                indices,
                distances,
                metric=about["metric"],
                method=about["method"],
                include_self=about["include_self"],
                seed=about["seed"],
                report=DescentReport.from_dict(about["report"]) if "report" in about else None,
            )
        except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
            expected = "what KNNGraph.save writes"
            message = f"{not_whole}found {archive.size} bytes, expected {expected}: {reason(error)}"
            raise FileFormatError(message, path, archive.size, expected) from error
