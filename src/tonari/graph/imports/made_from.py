"""The methods of KNNGraph that make a graph from the results of other libraries."""

from __future__ import annotations

from typing import Any, TypeVar

from tonari.graph.imports import arrays, csr, faiss

Graph = TypeVar("Graph", bound="MadeFrom")
_METHOD = "imported"


class MadeFrom:
    """Imports from other libraries; the constructor of KNNGraph checks the lists."""

    @classmethod
    def from_arrays(
        cls: type[Graph], indices: Any, distances: Any, *, metric: str = "euclidean", include_self: bool = False
    ) -> Graph:
        """Make a graph from lists in any order, such as those of pynndescent, UMAP or cuML.

        Parameters
        ----------
        indices : integers of shape (n, k)
            -1 where a neighbour is missing.
        distances : numbers of shape (n, k)
            Distances; not squared for "euclidean". float16 becomes float32, and whole numbers become float64.
        metric : str
            The metric of the distances. They are not recomputed.
        include_self : bool
            True: each list must contain its own point. The point moves to column 0, and its distance is set to the
        metric's distance of a point from itself. False: each list's own point is removed from whichever column it
        is in. If at least one list contained its own point, the graph has one column less. A list that did not
        contain it, which happens among duplicates, then loses its last neighbour.

        Returns
        -------
        KNNGraph
            In host memory, with ``method="imported"``. Lists are sorted by (distance, index).

        Raises
        ------
        TypeError
            `indices` are not whole numbers; the arguments may be in the wrong order.
        ValueError
            A row lists a point twice, has an index that is out of range, or has a distance that is NaN or negative; or
            include_self is True and a row lacks its own point. The message names the row.

        Examples
        --------
        >>> import numpy as np, tonari
        >>> indices, distances = np.array([[0, 1], [1, 0], [1, 2]]), np.array([[0.0, 1.0], [0.0, 1.0], [2.0, 0.0]])
        >>> tonari.KNNGraph.from_arrays(indices, distances).indices.ravel().tolist()
        [1, 0, 1]
        """
        return cls._made(metric, include_self, arrays.from_arrays(indices, distances, metric, include_self))

    @classmethod
    def from_csr(cls: type[Graph], matrix: Any, *, metric: str = "euclidean", include_self: bool = False) -> Graph:
        """Make a graph from a sparse matrix whose stored entry (i, j) is the distance from i to its neighbour j.

        Such matrices are returned by scikit-learn's ``kneighbors_graph(mode="distance")`` and transformers of
        neighbours, and stored in ``adata.obsp["distances"]``.

        Parameters
        ----------
        matrix : SciPy sparse matrix or array of shape (n, n)
            Stored zeros are neighbours at distance 0. Rows may differ in length; the graph has as many columns as the
            longest row has entries, not counting the point itself.
        metric, include_self
            As for :meth:`from_arrays`.

        Returns
        -------
        KNNGraph
            As for :meth:`from_arrays`; missing neighbours are -1, at the end.

        Raises
        ------
        TypeError
            The matrix is not sparse, or does not contain numbers.
        ValueError
            The matrix is empty or not square; or as for :meth:`from_arrays`.

        Examples
        --------
        >>> import numpy as np, tonari
        >>> graph = tonari.knn_graph(np.array([[0.0], [1.0], [3.0]], dtype=np.float32), k=1)
        >>> tonari.KNNGraph.from_csr(graph.to_csr(include_self=True)).indices.ravel().tolist()
        [1, 0, 1]
        """
        return cls._made(metric, include_self, csr.from_csr(matrix, metric, include_self))

    @classmethod
    def from_faiss(
        cls: type[Graph], distances: Any, indices: Any, *, metric: str = "euclidean", include_self: bool = False
    ) -> Graph:
        """Make a graph from the result of a faiss search: ``KNNGraph.from_faiss(*index.search(x, k + 1))``.

        The queries of that search must be the points of the index.

        Parameters
        ----------
        distances : float32 of shape (n, k + 1)
            For ``faiss.METRIC_L2`` these are **squared** distances: "euclidean" takes their square roots, "sqeuclidean"
            keeps them. Values that are negative by rounding become 0.
        indices : int64 of shape (n, k + 1)
            -1 where a neighbour is missing.
        metric : str
            "euclidean" or "sqeuclidean" (METRIC_L2), "inner_product", "l1", "linf" or "canberra".
        include_self : bool
            As for :meth:`from_arrays`.

        Returns
        -------
        KNNGraph
            A graph of k columns, as for :meth:`from_arrays`; the point itself is found by its row number and removed.

        Raises
        ------
        TypeError
            The arguments are in the wrong order: indices first.
        ValueError
            faiss has no such metric; or as for :meth:`from_arrays`.

        Examples
        --------
        >>> import numpy as np, tonari
        >>> D, I = np.array([[0, 4], [0, 4]], np.float32), np.array([[0, 1], [1, 0]])
        >>> tonari.KNNGraph.from_faiss(D, I).distances.ravel().tolist()
        [2.0, 2.0]
        """
        return cls._made(metric, include_self, faiss.from_faiss(distances, indices, metric, include_self))

    @classmethod
    def _made(cls: type[Graph], metric: str, include_self: bool, lists: tuple[Any, Any]) -> Graph:
        return cls(*lists, metric, _METHOD, include_self=include_self)  # type: ignore[call-arg]
