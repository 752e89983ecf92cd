"""The methods of KNNGraph for sparse matrices, libraries of graphs, and tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy.typing as npt

from tonari.graph.exports import arrow, csr, edge_index, igraph, networkx, weights
from tonari.graph.lists import Lists

if TYPE_CHECKING:
    import scipy.sparse


class ToGraphs:
    """Exports that keep the edges as they are."""

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
            Order within each row, also in symmetric matrices. "distance": nearest first, the point itself in front,
            ties by column number (for scikit-learn, scanpy, UMAP). "index": by column number (for readers that need
            canonical CSR).
        include_self : bool, optional
            True: every row has its own point, in front if the order is by distance; if it has to be added, its distance
            is 0, and the row has k + 1 entries. False: no row has its own point. None: as in the graph.
        symmetric : "union" or "mutual", optional
            "union": (i, j) and (j, i) are stored if i or j has the other among its neighbours (the symmetric k-NN
            graph); rows have k entries or more. "mutual": they are stored if both have (the mutual k-NN graph); rows
            have at most k entries, possibly none. If both directions have a distance and the two differ, as in a graph
            from another program, the nearer one is stored for both. None: row i has only the neighbours of i.
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
            include_self is neither True nor False nor None, or dtype is neither float32 nor float64.
        ValueError
            The order or the kind of symmetry is unknown; or self would have to be added to a graph of similarities,
            which does not store the similarity of a point to itself.

        Notes
        -----
        Since SciPy 1.17 ``.astype`` returns a matrix whose rows are sorted by column number; ``.sqrt()``,
        ``.power(2)``, ``abs`` and negation even sort the rows of the matrix itself; ``.copy()`` and ``* 1.0`` keep the
        order. A reader that assumes that the first entries of a row are the nearest, as scanpy does, is then silently
        wrong. Request the `dtype` here instead, and change values in place: ``np.sqrt(matrix.data, out=matrix.data)``.

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
        """Return how much alike the points at both ends of each edge are, as a symmetric SciPy matrix.

        What spectral methods and community detection take: 0 without an edge, at most 1. An edge is there if one of its
        ends lists the other, as with ``to_csr(symmetric="union")``. The graph's own column of self, if there is one,
        is left out.

        Parameters
        ----------
        kind : "gaussian", "umap" or "jaccard"
            "gaussian": exp(-d² / (s_i s_j)), where s_i is the distance of i's farthest neighbour [1]_; 1 for
            duplicates. Of a point with no neighbours but duplicates, no other edge has a weight.

            "umap": a + b - a b, where a = exp(-max(0, d - r_i) / t_i) and b is that of j, or 0 if j does not list i.
            r_i is the distance of i's nearest neighbour that is not at 0, and t_i makes the weights of i's k
            neighbours sum to log2(k + 1) [2]_. These are UMAP's own weights for ``n_neighbors=k + 1``: its
            ``fuzzy_simplicial_set``, which computes in float32.

            "jaccard": the number of neighbours that i and j have in common, over that of all their neighbours [3]_.
            It depends on no distance. Points are no neighbours of themselves.

        Returns
        -------
        scipy.sparse.csr_matrix of float64 and shape (n, n)
            Symmetric, by column number, with nothing on the diagonal. Weights of 0 are not stored.

        Raises
        ------
        ImportError
            SciPy is not installed.
        ValueError
            The kind is unknown; the graph has similarities or an infinite distance, or for "umap" squared distances.
            "jaccard" takes them all.

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
            Contiguous; by point, and for each point nearest first. Missing neighbours are left out.
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
        Each point has exactly k edges, also among duplicates, where ``torch_geometric.nn.knn_graph``, which drops self
        by asking for one more, may return k + 1.

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
            None: directed, from each point to its neighbours. "union", "mutual": undirected, each pair once, as for
            :meth:`to_csr`; what leidenalg and ``community_leiden`` take.

        Returns
        -------
        igraph.Graph
            Vertices are the points, in their order, also those without edges. The edges have the attribute
            "distance". It is not called "weight": leidenalg and others take weights for similarities.

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
            Nodes are 0 to n - 1, also those without edges. The edges have the attribute "distance". It is not called
            "weight", which shortest paths take for a length and communities for a similarity: name it, as in
            ``networkx.shortest_path(graph, 0, 1, weight="distance")``.

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
            Columns "indices", FixedSizeList of int32 or int64, and "distances", FixedSizeList of float32 or float64,
            each of k values, as in the graph: missing neighbours are -1, and an infinite distance. They share memory
            with the graph. The schema's metadata has "tonari", a JSON object with metric, method, include_self and
            seed.

        Raises
        ------
        ImportError
            pyarrow is not installed.

        Notes
        -----
        ``KNNGraph.from_arrays`` takes the values back: ``column.combine_chunks().flatten()`` is all of them, to be
        reshaped to (n, k). polars reads fixed-size lists as arrays, DuckDB too.
        """
        return arrow.to_arrow(self.lists)
