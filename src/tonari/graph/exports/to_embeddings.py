"""The methods of KNNGraph for embeddings and estimators, each with what its consumer takes for granted."""

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
            Of the graph's points, with its metric. With it ``UMAP.transform`` embeds new points, by their exact
            neighbours; without it UMAP refuses to.
        n_neighbors : int, optional
            The n_neighbors of UMAP. Default: the columns of the graph with self.

        Returns
        -------
        indices : int32 of shape (n, n_neighbors)
            Self first, then the nearest. UMAP checks neither, and its weights are wrong otherwise.
        distances : float32 of shape (n, n_neighbors)
            0 for self. Both arrays are copies: UMAP writes into them.
        search_index : pynndescent.NNDescent
            Only with `index`; it can be pickled with the fitted UMAP. ``UMAP.update`` is refused.

        Raises
        ------
        ValueError
            The graph has fewer columns than n_neighbors (UMAP would compute other neighbours, with a warning), squared
            distances or similarities; or index is not of as many points or of another metric.
        ImportError
            index is given and pynndescent is not installed.

        Notes
        -----
        Missing neighbours stay -1 at an infinite distance, which UMAP supports.
        Weights are those of UMAP's own neighbours where these are exact (pynndescent's are not always).

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
            That of the affinities; the largest, for those with several.
        index : tonari.Index, optional
            Of the graph's points, with its metric. With it ``embedding.transform`` embeds new points, by their exact
            neighbours; without it openTSNE raises RuntimeError there.

        Returns
        -------
        openTSNE.nearest_neighbors.PrecomputedNeighbors
            The min(n - 1, int(3 * perplexity)) nearest of each point, without self: with it half of the probability
            would lie on the diagonal, without a word.

        Raises
        ------
        ValueError
            The graph has fewer neighbours than that, missing ones (openTSNE would end the process), squared distances
            or similarities; or index is not of as many points or of another metric.
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
            The eps of DBSCAN, which takes a list for all points within eps.

        Returns
        -------
        scipy.sparse.csr_matrix of shape (n, n)
            Each row has the point itself first, at distance 0, which is stored, then its neighbours, nearest first:
            scikit-learn takes the first entry for the point where that is not listed, and loses a neighbour.

        Raises
        ------
        ValueError
            The graph has similarities, or some list may end before all points within eps.
        ImportError
            SciPy is not installed.

        Notes
        -----
        A graph with too few columns is refused by the estimators. TSNE squares what it is given: a graph by
        "sqeuclidean" would be squared twice.

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
        """Write the graph into an AnnData as ``scanpy.pp.neighbors`` does, which computes the connectivities.

        Parameters
        ----------
        adata : anndata.AnnData
            Its observations are the points of the graph, in the same order.
        n_neighbors : int, optional
            As for scanpy, which counts the observation itself. Default: the columns of the graph with self.
        use_rep : str, optional
            The representation from which the graph was built, such as "X_pca". scanpy records it, and later steps use
            it. Default: what scanpy chooses; "X_pca" if there are more than 50 variables.
        n_pcs : int, optional
            How many columns of "X_pca" the graph was built from.
        key_added : str, optional
            As for scanpy: another place than ``obsp["distances"]``, ``obsp["connectivities"]`` and
            ``uns["neighbors"]``.

        Raises
        ------
        ValueError
            The observations are not the points of the graph, judging by their number and by the distances of 64 rows in
            the representation; or the graph has fewer columns than n_neighbors, missing neighbours, squared distances
            or similarities.
        ImportError
            scanpy is not installed.

        Notes
        -----
        ``obsp["distances"]`` has n_neighbors - 1 entries a row, nearest first, without self.
        ``transformer=tonari.estimators.KNeighborsTransformer(n_neighbors=15)`` makes ``scanpy.pp.neighbors`` search by
        tonari; its ``obsp["distances"]`` has what the transformer returns, self included.
        """
        scanpy.to_scanpy(self.lists, adata, n_neighbors, use_rep=use_rep, n_pcs=n_pcs, key_added=key_added)
