"""The methods of KNNGraph for embeddings and estimators, in the form that each consumer expects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tonari.graph.exports import opentsne, scanpy, sklearn, umap
from tonari.graph.lists import Lists

if TYPE_CHECKING:
    import scipy.sparse


class ToEmbeddings:
    """Exports in the order and with the columns that consumers assume without a check."""

    if TYPE_CHECKING:

        @property
        def lists(self) -> Lists:
            """The contents."""

    def to_umap(self, index: Any = None, *, n_neighbors: int | None = None) -> tuple[Any, ...]:
        """Export the graph as the ``precomputed_knn`` of umap-learn.

        ``UMAP(n_neighbors=15, precomputed_knn=graph.to_umap()).fit(points)`` for a graph with k=14: UMAP counts the
        point itself.

        Parameters
        ----------
        index : tonari.Index, optional
            An index of the graph's points with the same metric. ``UMAP.transform`` uses it to find the exact neighbours
            of new points; without it, UMAP refuses to embed new points.
        n_neighbors : int, optional
            The n_neighbors of UMAP. Default: the number of columns of the graph, counting the point itself.

        Returns
        -------
        indices : int32 of shape (n, n_neighbors)
            The point itself first, then its neighbours, nearest first. UMAP does not check this order, and computes
            wrong weights for any other.
        distances : float32 of shape (n, n_neighbors)
            0 for the point itself. Both arrays are copies, since UMAP writes into them.
        search_index : pynndescent.NNDescent
            Returned only with `index`. It can be pickled with the fitted UMAP; ``UMAP.update`` is refused.

        Raises
        ------
        ValueError
            The graph has fewer columns than n_neighbors (UMAP would then compute its own neighbours, with a warning),
            or contains squared distances or similarities; or the index has another number of points or another metric.
        ImportError
            index is given, but pynndescent is not installed.

        Notes
        -----
        Missing neighbours stay -1 at an infinite distance, which UMAP supports. If UMAP's own neighbours are exact, its
        weights are the same as with this graph (pynndescent may miss some neighbours).

        Examples
        --------
        >>> import numpy as np, tonari
        >>> graph = tonari.knn_graph(np.array([[0.0], [1.0], [3.0]], dtype=np.float32), k=1)
        >>> indices, distances = graph.to_umap()
        >>> indices.tolist(), distances.tolist()
        ([[0, 1], [1, 0], [2, 1]], [[0.0, 1.0], [0.0, 1.0], [0.0, 2.0]])
        """
        return umap.to_umap(self.lists, index, n_neighbors)

    def to_opentsne(self, perplexity: float = 30, index: Any = None) -> Any:
        """Export the graph as the ``knn_index`` of openTSNE.

        ``PerplexityBasedNN(knn_index=graph.to_opentsne(30), perplexity=30)`` makes the affinities for
        ``openTSNE.TSNE().fit(affinities=...)``.

        Parameters
        ----------
        perplexity : float
            The perplexity of the affinities; the largest one, if they have several.
        index : tonari.Index, optional
            An index of the graph's points with the same metric. ``embedding.transform`` uses it to find the exact
            neighbours of new points; without it, openTSNE raises RuntimeError there.

        Returns
        -------
        openTSNE.nearest_neighbors.PrecomputedNeighbors
            The min(n - 1, int(3 * perplexity)) nearest neighbours of each point, without the point itself. openTSNE
            does not check for it, and would put half of the probability on the diagonal.

        Raises
        ------
        ValueError
            The graph has too few neighbours or missing ones (which would crash openTSNE), squared distances or
            similarities; or the index has another number of points or another metric.
        ImportError
            openTSNE is not installed.
        """
        return opentsne.to_opentsne(self.lists, perplexity, index)

    def to_sklearn(self, *, eps: float | None = None) -> scipy.sparse.csr_matrix:
        """Export the graph for scikit-learn's estimators with ``metric="precomputed"``.

        ============================================  ==========================================================
        estimator                                     k of the graph, at least
        ============================================  ==========================================================
        LocalOutlierFactor(n_neighbors), Isomap,      n_neighbors
        KNeighborsClassifier, KNeighborsRegressor
        TSNE(perplexity, init="random")               int(3 * perplexity + 1), or n - 1 if that is less
        SpectralEmbedding, SpectralClustering         n_neighbors - 1: self counts.
                                                      ``affinity="precomputed_nearest_neighbors"``
        DBSCAN(eps)                                   until no list ends within eps; pass `eps` to have that checked
        ============================================  ==========================================================

        Local outlier factors are thus
        ``LocalOutlierFactor(20, metric="precomputed").fit_predict(tonari.knn_graph(points, 20).to_sklearn())``.

        Parameters
        ----------
        eps : float, optional
            The eps of DBSCAN. DBSCAN assumes that each list contains all points within eps; if `eps` is given, this is
            checked.

        Returns
        -------
        scipy.sparse.csr_matrix of shape (n, n)
            Each row has the point itself first, at a stored distance of 0, then its neighbours, nearest first. If the
            point were absent, scikit-learn would take its nearest neighbour for the point, and lose it.

        Raises
        ------
        ValueError
            The graph contains similarities, or a list may lack points within eps.
        ImportError
            SciPy is not installed.

        Notes
        -----
        The estimators refuse a graph with too few columns. TSNE squares its distances, so do not pass it a graph of
        "sqeuclidean".

        Examples
        --------
        >>> import numpy as np, tonari
        >>> graph = tonari.knn_graph(np.array([[0.0], [1.0], [1.0], [3.0]], dtype=np.float32), k=1)
        >>> matrix = graph.to_sklearn()
        >>> matrix.indices.reshape(4, 2).tolist(), matrix.data.reshape(4, 2).tolist()
        ([[0, 1], [1, 2], [2, 1], [3, 1]], [[0.0, 1.0], [0.0, 0.0], [0.0, 0.0], [0.0, 2.0]])
        """
        return sklearn.to_sklearn(self.lists, eps)

    def to_scanpy(
        self,
        adata: Any,
        *,
        n_neighbors: int | None = None,
        use_rep: str | None = None,
        n_pcs: int | None = None,
        key_added: str | None = None,
    ) -> None:
        """Write the graph into an AnnData through ``scanpy.pp.neighbors``, which computes the connectivities.

        Parameters
        ----------
        adata : anndata.AnnData
            The data whose observations are the points of the graph, in the same order.
        n_neighbors : int, optional
            As for scanpy, which counts the observation itself. Default: the number of columns of the graph, counting
            self.
        use_rep : str, optional
            The representation from which the graph was built, such as "X_pca". scanpy records it for later steps.
            Default: scanpy's choice, which is "X_pca" for more than 50 variables.
        n_pcs : int, optional
            The number of columns of "X_pca" from which the graph was built.
        key_added : str, optional
            As for scanpy: the key for the results, instead of ``obsp["distances"]``, ``obsp["connectivities"]`` and
            ``uns["neighbors"]``.

        Raises
        ------
        ValueError
            The observations are not the points of the graph (their number and the distances of 64 rows are compared);
            or the graph has fewer columns than n_neighbors, missing neighbours, squared distances or similarities.
        ImportError
            scanpy is not installed.

        Notes
        -----
        Each row of ``obsp["distances"]`` has n_neighbors - 1 entries, nearest first, without self. As an alternative,
        ``scanpy.pp.neighbors(transformer=tonari.estimators.KNeighborsTransformer(n_neighbors=15))`` searches with
        tonari; its ``obsp["distances"]`` includes self.
        """
        scanpy.to_scanpy(self.lists, adata, n_neighbors, use_rep=use_rep, n_pcs=n_pcs, key_added=key_added)
