"""The methods of KNNGraph for sparse matrices, libraries of graphs, and tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy.typing as npt

from tonari.graph.exports import arrow, csr, edge_index, igraph, networkx, weights
from tonari.graph.lists import Lists

if TYPE_CHECKING:
    import scipy.sparse


class ToGraphs:
    """Exports of the edges to matrices, graph libraries and tables."""

    if TYPE_CHECKING:

        @property
        def lists(self) -> Lists:
            """The contents."""

    def to_csr(
        self,
        *,
        order: Literal["distance", "index"] = "distance",
        include_self: bool | None = None,
        symmetric: Literal["union", "mutual"] | None = None,
        dtype: npt.DTypeLike | None = None,
    ) -> scipy.sparse.csr_matrix:
        """Export the graph as a SciPy matrix whose entry (i, j) is the distance from i to its neighbour j.

        Distances of 0 are stored, missing neighbours are not. The matrix shares no memory with the graph; a graph on
        CUDA is copied to host memory.

        Parameters
        ----------
        order : "distance" or "index"
            The order within each row, also of symmetric matrices. "distance": the point itself, then nearest first,
            ties by column number (for scikit-learn, scanpy, UMAP). "index": by column number (canonical CSR).
        include_self : bool, optional
            True: every row contains its own point, first if the order is by distance. If the graph lacks it, it is
            added at distance 0, and rows have k + 1 entries. False: no row contains its own point. None: as in the
            graph.
        symmetric : "union" or "mutual", optional
            "union": (i, j) and (j, i) are stored if i or j lists the other (the symmetric k-NN graph); rows have at
            least k entries. "mutual": they are stored if each lists the other (the mutual k-NN graph); rows have at
            most k entries, possibly none. If the two directions have different distances, as in a graph from another
            program, the nearer one is stored for both. None: row i has the neighbours of i only.
        dtype : float32 or float64, optional
            Dtype of the distances in the matrix. Default: that of the graph.

        Returns
        -------
        scipy.sparse.csr_matrix of shape (n, n)

        Raises
        ------
        ImportError
            SciPy is not installed.
        TypeError
            include_self is not True, False or None, or dtype is not float32 or float64.
        ValueError
            The order or the kind of symmetry is unknown; or include_self is True for a graph of similarities without
            self, in which the similarity of a point to itself is unknown.

        Notes
        -----
        In SciPy 1.17 and later, ``.astype`` returns a matrix whose rows are sorted by column number, and ``.sqrt()``,
        ``.power(2)``, ``abs`` and negation sort the rows of the matrix itself; ``.copy()`` and ``* 1.0`` keep the
        order. Readers such as scanpy, which assume that the nearest entries come first, then give wrong results. Pass
        `dtype` here instead of calling ``.astype``, and change values in place: ``np.sqrt(matrix.data,
        out=matrix.data)``.

        Examples
        --------
        >>> import numpy as np, tonari
        >>> graph = tonari.knn_graph(np.array([[0.0], [1.0], [3.0]], dtype=np.float32), k=1)
        >>> graph.to_csr(include_self=True).indices  # point 0: itself, 1; point 1: itself, 0; point 2: itself, 1
        array([0, 1, 1, 0, 2, 1], dtype=int32)
        >>> graph.to_csr(symmetric="union").toarray().tolist()
        [[0.0, 1.0, 0.0], [1.0, 0.0, 2.0], [0.0, 2.0, 0.0]]
        >>> graph.to_csr(symmetric="mutual", dtype="float64").toarray().tolist()
        [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
        """
        return csr.to_csr(self.lists, order=order, include_self=include_self, symmetric=symmetric, dtype=dtype)

    def to_weights(self, kind: Literal["gaussian", "umap", "jaccard"]) -> scipy.sparse.csr_matrix:
        """Return the similarity of the two points of each edge, as a symmetric SciPy matrix.

        Spectral methods and community detection take such weights: at most 1, and 0 without an edge. Two points have an
        edge if one lists the other, as with ``to_csr(symmetric="union")``. A column of self is left out.

        Parameters
        ----------
        kind : "gaussian", "umap" or "jaccard"
            "gaussian": exp(-d² / (s_i s_j)), where s_i is the distance of i's farthest neighbour [1]_; 1 for
            duplicates. If all neighbours of a point are duplicates, its other edges have weight 0.

            "umap": a + b - a b, where a = exp(-max(0, d - r_i) / t_i) and b is that of j, or 0 if j does not list i.
            r_i is the smallest distance above 0 in the list of i, and t_i is chosen so that the weights of i's k
            neighbours sum to log2(k + 1) [2]_. These are the weights of UMAP's ``fuzzy_simplicial_set`` for
            ``n_neighbors=k + 1``, which computes in float32.

            "jaccard": the number of neighbours that i and j have in common, divided by the number of points in either
            list [3]_. It does not depend on distances. Points do not count as neighbours of themselves.

        Returns
        -------
        scipy.sparse.csr_matrix of float64 and shape (n, n)
            Symmetric, with rows in order of column number and an empty diagonal. Weights of 0 are not stored.

        Raises
        ------
        ImportError
            SciPy is not installed.
        ValueError
            The kind is unknown; or the graph contains similarities, infinite distances or, for "umap", squared
            distances. "jaccard" accepts every graph.

        References
        ----------
        .. [1] Zelnik-Manor and Perona, "Self-tuning spectral clustering", NIPS 17 (2004), section 2.1, with k for 7.
        .. [2] McInnes, Healy and Melville, "UMAP: Uniform manifold approximation and projection for dimension
           reduction", arXiv:1802.03426 (2018), section 3.1, and umap-learn 0.5's bisection.
        .. [3] Levine et al., "Data-driven phenotypic dissection of AML" (PhenoGraph), Cell 162 (2015).

        Examples
        --------
        >>> import numpy as np, tonari
        >>> graph = tonari.knn_graph(np.array([[0.0], [1.0], [2.0], [4.0]], dtype=np.float32), k=2)
        >>> graph.to_weights("jaccard").toarray().round(2).tolist()
        [[0.0, 0.33, 0.33, 0.0], [0.33, 0.0, 0.33, 0.33], [0.33, 0.33, 0.0, 0.33], [0.0, 0.33, 0.33, 0.0]]
        """
        return weights.weights(self.lists, kind)

    def to_edge_index(
        self, *, flow: Literal["source_to_target", "target_to_source"] = "source_to_target"
    ) -> tuple[Any, Any]:
        """Export the edges for PyTorch Geometric, without self-loops, on the device of the graph.

        Parameters
        ----------
        flow : "source_to_target" or "target_to_source"
            As for ``torch_geometric.nn.knn_graph``. "source_to_target": row 0 holds neighbours and row 1 the points
            that list them, so that messages go from neighbours to points. "target_to_source": the other way round.

        Returns
        -------
        edge_index : int64 tensor of shape (2, edges)
            A contiguous tensor, ordered by point, and for each point nearest first. Missing neighbours are left out.
        edge_attr : float32 or float64 tensor of shape (edges,)
            The distances.

        Raises
        ------
        ValueError
            The flow is unknown.
        ImportError
            PyTorch is not installed.

        Notes
        -----
        Each point has exactly k edges, also among duplicates. ``torch_geometric.nn.knn_graph`` searches for k + 1
        points and drops the point itself; among duplicates it may return k + 1 edges.

        Examples
        --------
        >>> import numpy as np, tonari
        >>> graph = tonari.knn_graph(np.array([[0.0], [1.0], [3.0]], dtype=np.float32), k=1)
        >>> graph.to_edge_index()[0].tolist()
        [[1, 0, 1], [0, 1, 2]]
        """
        return edge_index.to_edge_index(self.lists, flow)

    def to_igraph(self, *, symmetric: Literal["union", "mutual"] | None = None) -> Any:
        """Export the graph as an ``igraph.Graph``, without self-loops.

        Parameters
        ----------
        symmetric : "union" or "mutual", optional
            None: directed, from each point to its neighbours. "union", "mutual": undirected, with each pair once, as
            for :meth:`to_csr`; leidenalg and ``community_leiden`` take such graphs.

        Returns
        -------
        igraph.Graph
            Vertices are the points in their order, including points without edges. Edges have the attribute "distance".
            It is not called "weight", because leidenalg and others take weights for similarities.

        Raises
        ------
        ImportError
            igraph or SciPy is not installed.
        ValueError
            The kind of symmetry is unknown.
        """
        return igraph.to_igraph(self.lists, symmetric)

    def to_networkx(self, *, symmetric: Literal["union", "mutual"] | None = None) -> Any:
        """Export the graph as a ``networkx.DiGraph``, or a ``Graph`` if it is symmetric, without self-loops.

        Parameters
        ----------
        symmetric : "union" or "mutual", optional
            As for :meth:`to_igraph`.

        Returns
        -------
        networkx.DiGraph or networkx.Graph
            Nodes are 0 to n - 1, including nodes without edges. Edges have the attribute "distance". It is not called
            "weight", because community detection takes weights for similarities. Pass the name where a length is
            needed: ``networkx.shortest_path(graph, 0, 1, weight="distance")``.

        Raises
        ------
        ImportError
            networkx or SciPy is not installed.
        ValueError
            The kind of symmetry is unknown.
        """
        return networkx.to_networkx(self.lists, symmetric)

    def to_arrow(self) -> Any:
        """Export the graph as an Arrow table, a row for each point; ``pyarrow.parquet.write_table`` writes it.

        Returns
        -------
        pyarrow.Table of n rows
            Two columns of fixed-size lists of k values, which share memory with the graph: "indices" (int32 or int64)
            and "distances" (float32 or float64). Missing neighbours are -1 at an infinite distance. The metadata of the
            schema contain "tonari", a JSON object with metric, method, include_self and seed.

        Raises
        ------
        ImportError
            pyarrow is not installed.

        Notes
        -----
        To convert a table back, reshape ``column.combine_chunks().flatten()`` of both columns to (n, k) and pass them
        to ``KNNGraph.from_arrays``. polars and DuckDB read fixed-size lists as arrays.
        """
        return arrow.to_arrow(self.lists)
