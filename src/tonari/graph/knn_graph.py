"""The k-nearest-neighbour graph: a container with its checks and its file.

It inherits exports and imports from separate classes, which change whenever another library changes.
"""

from __future__ import annotations

import dataclasses
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tonari import inputs
from tonari.core.hints import Hinted
from tonari.core.results.neighbors import Neighbors
from tonari.core.trail import Record
from tonari.graph import structure
from tonari.graph.changing import Changing
from tonari.graph.exports.methods import Exports
from tonari.graph.exports.to_pictures import ToPictures
from tonari.graph.files import npz
from tonari.graph.files.directory import open_lists
from tonari.graph.imports import MadeFrom
from tonari.graph.lists import Lists, check_filters, check_lists, in_numpy, plain_array
from tonari.graph.recall import graph_recall
from tonari.graph.reshaping import Reshaped
from tonari.graph.structure import ReverseNeighbors
from tonari.metrics import get_metric
from tonari.metrics.recall import Recall
from tonari.metrics.transforms.change import check_weights
from tonari.metrics.transforms.maps import check_transform
from tonari.nn_descent.report import DescentReport


@dataclass(frozen=True, eq=False, repr=False)
class KNNGraph(Exports, ToPictures, MadeFrom, Reshaped, Changing, Hinted):
    """The k nearest neighbours of each of n points among the other points.

    The arrays belong to the library of the points passed to :func:`tonari.knn_graph`: NumPy arrays or torch tensors in
    host memory; torch tensors, CuPy or JAX arrays on CUDA. On CUDA the constructor checks only shapes and dtypes, since
    checking values would wait for the device; :meth:`to_numpy` checks the values.

    Attributes
    ----------
    indices : int32 or int64 of shape (n, k)
        Row i lists the neighbours of point i, sorted by (distance, index). Missing neighbours are -1, at the end.
    distances : float32 or float64 of shape (n, k)
        Distances of these neighbours, ascending (``inner_product``: similarities, descending); inf (-inf) for missing
        neighbours.
    metric : str
        A name in ``tonari.metrics.METRICS``, ``CHANGED`` or ``MAPPED``; "precomputed" for a matrix of distances, and
        "function:" with the name of a function.
    method : str
        The method that built the graph: "exact" or "kdtree", which give the same graph, or "nn-descent". An imported
        graph has "imported".
    include_self : bool
        Whether column 0 is the point itself. If not, no row lists its own point.
    seed : int, optional
        The seed, if the method draws random numbers.
    report : tonari.nn_descent.report.DescentReport, optional
        For an approximate graph: its recall, measured on a sample, and its rounds.
    weights : tuple of float, optional
        The weights of the columns of the points, if the graph was built with any; 1 / V for "seuclidean".
    transform : float64 array of shape (d, p), optional
        The matrix that the points were multiplied by, if the graph was built with one; for "mahalanobis" a root T of
        VI = T Tᵀ.
    filters : tuple of str
        The arguments that restricted which points may be neighbours: names from "where", "batch" and "exclude_within".
        Methods and functions that compare with all points refuse such a graph: :meth:`add`, :meth:`remove`,
        :meth:`replace`, :func:`tonari.merge` and :meth:`recall`. Empty for other graphs, and for files without this
        field.
    record : tonari.core.trail.Record, optional
        The record of the call that built the graph: its plan, the choices made later with their reasons, and its
        attempts. An attempt is a pass over some rows, with the number of rows whose neighbours it proved exact, and its
        duration (on CUDA only where the call has to wait for the device anyway). ``print(graph.record)`` shows the
        record. Directories of :func:`tonari.build_graph` contain it; files of :meth:`save` do not, so that equal graphs
        give equal bytes.

    Raises
    ------
    TypeError
        The arrays have other dtypes or belong to different libraries, or another argument has a wrong type.
    ValueError
        The shapes differ, an array has masked values, or the metric is unknown; or a row is not a valid list of
        neighbours, and the message names it. A row is invalid if an index is out of range or occurs twice, if self is
        in the list although include_self is False (or absent although it is True), if a distance is NaN or less than
        the previous one (for similarities, larger), or if a missing neighbour is not at the end or has a finite
        distance. `filters` has an unknown name.

    Examples
    --------
    >>> import numpy as np
    >>> from tonari.graph.knn_graph import KNNGraph
    >>> KNNGraph(np.array([[1], [0]], np.int32), np.array([[2.5], [2.5]], np.float32), "euclidean", "exact")
    KNNGraph(n=2, k=1, metric='euclidean', method='exact')
    """

    indices: Any
    distances: Any
    metric: str
    method: str
    include_self: bool = False
    seed: int | None = None
    report: DescentReport | None = None
    weights: tuple[float, ...] | None = None
    record: Record | None = None
    transform: npt.NDArray[np.float64] | None = None
    filters: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        metric = get_metric(self.metric)
        object.__setattr__(self, "metric", metric.name)
        object.__setattr__(self, "weights", check_weights(metric.name, self.weights))
        object.__setattr__(self, "transform", check_transform(self.transform))
        object.__setattr__(self, "filters", check_filters(self.filters))
        if not isinstance(self.method, str):
            raise TypeError(f"method={self.method!r}: expected a name, got {type(self.method).__name__}")
        if self.report is not None and not isinstance(self.report, DescentReport):
            raise TypeError(f"report: expected a DescentReport or None, got {type(self.report).__name__}")
        if self.record is not None and not isinstance(self.record, Record):
            raise TypeError(f"record: expected a Record or None, got {type(self.record).__name__}")
        inputs.check_flag(self.include_self, "include_self")
        if self.seed is not None:
            inputs.check_count(self.seed, "seed", least=0)
        for name in ("indices", "distances"):
            object.__setattr__(self, name, plain_array(getattr(self, name), name))
        indices, distances = self.indices, self.distances
        dtypes = inputs.name_of_dtype(indices), inputs.name_of_dtype(distances)
        if dtypes[0] not in ("int32", "int64") or dtypes[1] not in ("float32", "float64"):
            raise TypeError(
                f"indices must be int32 or int64 and distances float32 or float64, got {dtypes[0]} and {dtypes[1]}"
            )
        shapes = tuple(indices.shape), tuple(distances.shape)
        if len(shapes[0]) != 2 or shapes[0] != shapes[1] or 0 in shapes[0]:
            raise ValueError(
                f"indices and distances must have the same non-empty shape (n, k), got {shapes[0]} and {shapes[1]}"
            )
        places = inputs.place_of(indices, "indices"), inputs.place_of(distances, "distances")
        if places[0] != places[1]:
            here, there = (place or "host memory" for place in places)
            raise ValueError(f"indices are in {here} and distances in {there}, expected both on the same device")
        if places[0] is not None:
            return
        kinds = inputs.kind_of(indices), inputs.kind_of(distances)
        if kinds[0] != kinds[1]:
            raise TypeError(f"indices are of {kinds[0]} and distances of {kinds[1]}: both must be of the same library")
        check_lists(
            in_numpy(indices),
            in_numpy(distances),
            np.arange(self.n),
            n=self.n,
            include_self=self.include_self,
            descending=metric.descending,
        )

    @classmethod
    def of_lists(cls, lists: Lists) -> KNNGraph:
        """Make a graph from lists that this package built, without the constructor's checks."""
        graph = object.__new__(cls)
        facts = dict(vars(lists))
        distances, indices = facts.pop("found")
        vars(graph).update(indices=indices, distances=distances, **facts)
        return graph

    @property
    def lists(self) -> Lists:
        """The contents as a plain record that shares the graph's arrays."""
        facts = self.metric, self.method, self.include_self, self.seed, self.report, self.weights, self.record
        return Lists(Neighbors(self.distances, self.indices), *facts, self.transform, self.filters)

    @property
    def n(self) -> int:
        """Number of points."""
        return int(self.indices.shape[0])

    @property
    def k(self) -> int:
        """Number of columns, including self if column 0 is self."""
        return int(self.indices.shape[1])

    def __repr__(self) -> str:
        also = f", seed={self.seed}" if self.seed is not None else ""
        also += ", include_self=True" if self.include_self else ""
        also += ", weighted" if self.weights is not None else ""
        also += f", transform of shape {self.transform.shape}" if self.transform is not None else ""
        also += f", filters={self.filters}" if self.filters else ""
        return f"KNNGraph(n={self.n}, k={self.k}, metric={self.metric!r}, method={self.method!r}{also})"

    def to_numpy(self) -> KNNGraph:
        """Return the graph as NumPy arrays.

        Arrays on a device are copied; tensors in host memory share their memory with the NumPy arrays. A graph of NumPy
        arrays returns itself.

        >>> import numpy as np
        >>> from tonari.graph.knn_graph import KNNGraph
        >>> graph = KNNGraph(np.array([[1], [0]], np.int32), np.array([[2.5], [2.5]], np.float32), "l1", "exact")
        >>> graph.to_numpy() is graph
        True
        """
        if isinstance(self.indices, np.ndarray):
            return self
        indices, distances = (in_numpy(inputs.to_host(part)) for part in (self.indices, self.distances))
        return dataclasses.replace(self, indices=indices, distances=distances)

    def recall(self, points: Any, *, sample: int = 1000, seed: int = 0, threads: int | None = None) -> Recall:
        """Compare a random sample of rows with the exact answer, on the CPU; see :mod:`tonari.graph.recall`.

        A graph that was built with filters is refused: it is exact, and its neighbours are not the nearest of all
        points.
        """
        return graph_recall(self.to_numpy().lists, points, sample=sample, seed=seed, threads=threads)

    def connected_components(self) -> npt.NDArray[np.int32]:
        """Return the connected component of each point, numbered from 0: int32 of shape (n,).

        Edges count in both directions. HDBSCAN, UMAP's spectral start and similar methods process each component
        separately, or refuse more than one; a larger k joins components. SciPy is required.

        Examples
        --------
        >>> import numpy as np, tonari
        >>> points = np.array([[0.0], [1.0], [7.0], [8.0]], dtype=np.float32)
        >>> tonari.knn_graph(points, k=1).connected_components().tolist()
        [0, 0, 1, 1]
        """
        return structure.connected_components(self.lists)

    def occurrence(self) -> npt.NDArray[np.int64]:
        """Return for each point the number of other points that list it as a neighbour: int64 of shape (n,).

        This number is called the k-occurrence. Its mean is k; it is far larger at hubs, and 0 at antihubs [1]_.

        References
        ----------
        .. [1] Radovanović, Nanopoulos and Ivanović, "Hubs in space", JMLR 11 (2010), section 2.

        Examples
        --------
        >>> import numpy as np, tonari
        >>> tonari.knn_graph(np.array([[0.0], [1.0], [3.0]], dtype=np.float32), k=1).occurrence().tolist()
        [1, 2, 0]
        """
        return structure.occurrence(self.lists)

    def reverse_neighbors(self) -> ReverseNeighbors:
        """Return for each point the other points that list it as a neighbour, in ascending order of row number.

        The time is proportional to the number of entries. A graph on CUDA is copied to host memory.

        Returns
        -------
        ReverseNeighbors(indptr, indices, distances)
            NumPy arrays in compressed sparse row (CSR) form: the points that list point i are
            ``indices[indptr[i]:indptr[i + 1]]``. ``numpy.diff(indptr)``, the number of points that list each point,
            equals :meth:`occurrence`.

        Examples
        --------
        >>> import numpy as np, tonari
        >>> found = tonari.knn_graph(np.array([[0.0], [1.0], [3.0]], dtype=np.float32), k=1).reverse_neighbors()
        >>> found.indptr.tolist(), found.indices.tolist()
        ([0, 1, 3, 3], [1, 0, 2])
        """
        return structure.reverse_neighbors(self.lists)

    def overlap(self, other: KNNGraph) -> npt.NDArray[np.float64]:
        """Return for each point the share of neighbours that two graphs have in common: float64 of shape (n,).

        The share is the number of common neighbours divided by the length of the longer list, not counting the point
        itself. It is 1 if both lists are empty. If `other` is the exact graph of the same k, the mean over all points
        is the recall by index.

        Raises
        ------
        TypeError
            other is not a KNNGraph.
        ValueError
            The graphs differ in their number of points.

        Examples
        --------
        >>> import numpy as np, tonari
        >>> points = np.array([[0.0], [1.0], [3.0]], dtype=np.float32)
        >>> tonari.knn_graph(points, k=1).overlap(tonari.knn_graph(points[:, :1] ** 4, k=1)).tolist()
        [1.0, 1.0, 1.0]
        """
        if not isinstance(other, KNNGraph):
            raise TypeError(f"other: expected a KNNGraph, got {type(other).__name__}")
        return structure.overlap(self.lists, other.lists)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the graph atomically to an uncompressed .npz file; equal graphs give equal bytes.

        NumPy can read the file: its arrays are ``indices``, ``distances`` and ``about``, a JSON text with all other
        fields. Fields that are None or empty, such as `filters`, may be absent. A graph on CUDA is copied to host
        memory, and :meth:`load` returns NumPy arrays.
        """
        npz.save(self.lists, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, max_expansion: float | None = None) -> KNNGraph:
        """Read a graph that :meth:`save` wrote.

        Parameters
        ----------
        path : path
        max_expansion : float, optional
            Maximum size of an array in memory, as a multiple of the size of the file; see :func:`tonari.io.read`.

        Raises
        ------
        OSError
            The file cannot be opened.
        tonari.io.FileFormatError
            The file is damaged, is not a graph, has a later version of the format, or holds more than `max_expansion`
            allows. It is a ValueError with the path, the bytes found and the bytes expected.
        MemoryError
            The file is valid, but does not fit into memory.
        """
        return npz.load(path, max_expansion, cls)

    @classmethod
    def open(cls, folder: str | os.PathLike[str]) -> KNNGraph:
        """Map the graph in a directory that :func:`tonari.build_graph` wrote; values are read when they are used.

        Raises
        ------
        FileNotFoundError
            The directory contains no graph.
        ValueError
            The graph is not complete yet.
        tonari.io.FileFormatError
            A file is damaged, or of a later version of the format.
        """
        return cls.of_lists(open_lists(Path(folder)))
