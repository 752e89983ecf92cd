"""Hints for users of other libraries: tonari's counterparts of names that tonari does not have.

`ATTRIBUTES` has the names of attributes of modules and classes, `ARGUMENTS` those of arguments of public functions. All
other names raise the usual error.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

_GRAPH_LISTS = "distances and indices are arrays: graph.distances, graph.indices"

# Maps a module or class, then the name of a missing attribute, to a hint.
ATTRIBUTES: dict[str, dict[str, str]] = {
    "tonari": {
        "load": "tonari.KNNGraph.load and tonari.Index.load open what save wrote; tonari.io.read opens arrays",
        "save": "graph.save and index.save write files; tonari.io.write writes arrays",
        "read": "use tonari.io.read",
        "write": "use tonari.io.write",
        "kneighbors": "use tonari.search(queries, points, k), or tonari.knn_graph(points, k)",
        "query": "use tonari.search(queries, points, k), or tonari.Index(points).search(queries, k)",
        "knn": "use tonari.search(queries, points, k), or tonari.knn_graph(points, k)",
        "kneighbors_graph": "use tonari.knn_graph(points, k)",
        "range_search": "use tonari.radius_search(queries, points, radius)",
        "radius_neighbors": "use tonari.radius_search(queries, points, radius)",
        "KDTree": "use tonari.Index(points, method='kdtree'), or tonari.compat.scipy.KDTree",
        "cKDTree": "use tonari.Index(points, method='kdtree'), or tonari.compat.scipy.KDTree",
        "match_coordinates_sky": "use tonari.compat.astropy.match_coordinates_sky",
        "search_around_sky": "use tonari.compat.astropy.search_around_sky",
        "HDBSCAN": "use tonari.mutual_reachability_tree(points, min_samples).clusters(min_cluster_size)",
        "NearestNeighbors": "use tonari.estimators.NearestNeighbors",
        "topk": "use tonari.select_k",
    },
    "tonari.io": {"save": "use tonari.io.write", "load": "use tonari.io.read", "open": "use tonari.io.read"},
    "tonari.estimators": {
        "OPTICS": "use DBSCAN, or tonari.mutual_reachability_tree (docs/hdbscan.md); sklearn.cluster has this class",
        "dbscan": "use DBSCAN(eps=eps, min_samples=min_samples).fit(X)",
        "HDBSCAN": "use tonari.mutual_reachability_tree(X, min_samples).clusters(min_cluster_size) (docs/hdbscan.md)",
        "KDTree": "use tonari.compat.scipy.KDTree",
        "BallTree": "use tonari.compat.scipy.KDTree, or tonari.Index",
        "KernelDensity": "use sklearn.neighbors.KernelDensity",
    },
    "tonari.compat.faiss": {
        "METRIC_Lp": "use METRIC_L1, METRIC_L2 or METRIC_Linf, or tonari.Index(x, metric='power:3')",
        **dict.fromkeys(
            ("METRIC_JensenShannon", "METRIC_GOWER"),
            "use faiss for this metric; docs/which-metric.md lists the metrics of tonari",
        ),
        "METRIC_NaNEuclidean": "use tonari.search(queries, points, k, metric='nan_euclidean')",
        "METRIC_BrayCurtis": "use tonari.search(queries, points, k, metric='braycurtis') for rows that each sum to one",
        **dict.fromkeys(("vector_to_array", "swig_ptr", "rev_swig_ptr"), "arrays are NumPy's here"),
        "METRIC_Jaccard": "use faiss for real vectors, or tonari.Index(bits, metric='jaccard') for sets",
        "METRIC_ABS_INNER_PRODUCT": "use faiss for this metric",
        **dict.fromkeys(
            ("IDSelectorBatch", "IDSelectorArray", "IDSelectorRange", "IDSelectorBitmap", "IDSelectorNot"),
            "pass the ids themselves to remove_ids; for searches, use where= and exclude= of tonari.search",
        ),
        "SearchParameters": "for filters, use where= and exclude= of tonari.search",
        "IndexPreTransform": "transform the rows, and use IndexFlat",
        "IndexRefineFlat": "use IndexFlat, which is exact",
        "knn_gpu": "use tonari.search(queries, points, k, metric='sqeuclidean', device='cuda')",
        "pairwise_distances": "use scipy.spatial.distance.cdist; knn finds the nearest without all distances",
        "Kmeans": "use faiss.Kmeans, or scikit-learn's; tonari has no clustering by centres",
        "IndexIVFFlat": "use IndexFlat, which is exact, or tonari.Index",
        "IndexHNSWFlat": "use IndexFlat, which is exact, or tonari.Index",
        **dict.fromkeys(
            ("IndexPQ", "IndexIVFPQ", "IndexLSH", "IndexScalarQuantizer", "IndexBinaryFlat"),
            "use IndexFlat, which is exact, or tonari.Index; metric='hamming' is for rows of bits",
        ),
        "index_factory": "use IndexFlatL2 or IndexFlatIP; all answers are exact",
        "write_index": "faiss.write_index takes FAISS's own indexes; use tonari.Index(points).save(path), or pickle",
        "read_index": "use tonari.Index.load(path), or pickle; rows of a FAISS file are faiss.read_index(path)"
        ".reconstruct_n(0, ntotal)",
        "serialize_index": "use pickle.dumps(index)",
        "deserialize_index": "use pickle.loads(data)",
        "StandardGpuResources": "use tonari.Index(points, device='cuda')",
        "index_cpu_to_gpu": "use tonari.Index(points, device='cuda')",
        "range_search": "use IndexFlat.range_search",
    },
    "tonari.compat.scipy": {
        "Rectangle": "use scipy.spatial.Rectangle",
        "minkowski_distance": "use scipy.spatial.minkowski_distance",
        "distance_matrix": "use scipy.spatial.distance_matrix; tonari.search finds nearest rows without all distances",
        **{
            name: f"use scipy.spatial.{name}"
            for name in ("minkowski_distance_p", "Voronoi", "Delaunay", "ConvexHull", "SphericalVoronoi", "procrustes")
        },
        **dict.fromkeys(
            ("cdist", "pdist"), "use scipy.spatial.distance; tonari.search finds nearest rows without all distances"
        ),
        "distance": "use scipy.spatial.distance; tonari.search finds nearest rows without all distances",
    },
    "tonari.compat.pyg": {
        "fps": "torch_cluster.fps takes the same tensors; no neighbours are searched for it",
        "graclus_cluster": "torch_cluster.graclus_cluster takes the edges of knn_graph",
        "DynamicEdgeConv": "pass knn_graph(x, k, batch) as edge_index to torch_geometric.nn.EdgeConv",
        "KNNGraph": "torch_geometric.transforms.KNNGraph sets data.edge_index, which is knn_graph(data.pos, k) here",
        "RadiusGraph": "torch_geometric.transforms.RadiusGraph sets data.edge_index, as radius_graph(data.pos, r) is",
        "knn_interpolate": "use the edges of knn, or torch_geometric.nn.knn_interpolate",
    },
    "tonari.compat.pytorch3d": {
        "ball_query": "use tonari.radius_search(queries, points, radius, max_neighbors=K)",
        "chamfer_distance": "its terms are the distances of knn_points(p1, p2, K=1) and knn_points(p2, p1, K=1)",
        "sample_farthest_points": "no neighbours are searched for it; use pytorch3d.ops.sample_farthest_points",
    },
    "tonari.compat.sentence_transformers": {
        "paraphrase_mining": "encode the sentences, and use paraphrase_mining_embeddings",
        "cos_sim": "use sentence_transformers.util.cos_sim; semantic_search finds the largest without all of them",
        "dot_score": "use sentence_transformers.util.dot_score; semantic_search finds the largest without all of them",
        "SentenceTransformer": "encode with sentence_transformers.SentenceTransformer; searches are here",
        "util": "its functions are in this module: semantic_search, community_detection, paraphrase_mining_embeddings",
    },
    "tonari.compat.astropy": {
        "match_coordinates_3d": "use tonari.search on coords.cartesian.xyz.value.T, and a unit that both have",
        "search_around_3d": "use tonari.radius_search on coords.cartesian.xyz.value.T, and a unit that both have",
        "SkyCoord": "use astropy.coordinates.SkyCoord, or sky(ra=..., dec=...) of degrees without astropy",
        "Angle": "use astropy.coordinates.Angle",
    },
    "KDTree": {
        "query_radius": "use query_ball_point(x, r)",
        "kneighbors": "use query(x, k)",
        "search": "use query(x, k)",
        "two_point_correlation": "use count_neighbors(other, r)",
        "size": "there are no nodes to look at; n is the number of points",
        "indices": "there are no nodes to look at",
        "tree": "there are no nodes to look at",
    },
    "Index": {
        "query": "use Index.search(queries, k)",
        "kneighbors": "use Index.search(queries, k), which returns distances and indices",
        "radius_neighbors": "use Index.radius_search(queries, radius)",
        "range_search": "use Index.radius_search(queries, radius)",
        "query_ball_point": "use Index.radius_search(queries, radius)",
        "knn_graph": "use tonari.knn_graph(index.points, k)",
        "fit": "points are given to tonari.Index(points)",
        "shape": "use index.n and index.d",
        "delete": "use Index.remove(ids)",
        "remove_ids": "use Index.remove(ids)",
        "ntotal": "use len(index)",
    },
    "KNNGraph": {
        "query": "use tonari.Index(points).search(queries, k)",
        "kneighbors": _GRAPH_LISTS,
        "radius_neighbors": "use tonari.radius_graph(points, radius)",
        "neighbors": _GRAPH_LISTS,
        "shape": "use graph.n and graph.k",
    },
    "IndexFlat": {
        "add_with_ids": "use IndexIDMap(index), or tonari.Index, whose add returns ids",
        "search_and_reconstruct": "use search, and index.reconstruct_n()[I]",
        "assign": "use search(x, k)[1]",
        "merge_from": "use add(other.reconstruct_n())",
        "nprobe": "there are no lists to probe: all answers are exact",
    },
    "IndexIDMap": {
        "reconstruct": "use IndexIDMap2, or index.index.reconstruct(row)",
        "reconstruct_n": "rows have no order of ids: use index.index.reconstruct_n(), in the order of index.id_map",
    },
    "NearestNeighbors": {
        "query": "use kneighbors(X)",
        "query_radius": "use radius_neighbors(X, radius)",
    },
}

_K = "the number of neighbours is k="
_RADIUS = "tonari.radius_search, radius_graph and Index.radius_search take a radius; here the k nearest are found"
_SIMILAR = "tonari.radius_search and pairs take min_similarity=; here the k nearest are found"

ATTRIBUTES["cKDTree"] = ATTRIBUTES["KDTree"]

# Maps the name of an unknown argument to a hint, which names the function's argument with the same meaning, if any.
ARGUMENTS: dict[str, str] = {
    **dict.fromkeys(("n_neighbors", "top_k", "topk", "k_neighbors", "num_neighbors", "neighbors"), _K),
    **dict.fromkeys(("n_jobs", "workers", "num_threads", "num_workers", "nthreads"), "threads are threads="),
    "radius": _RADIUS,
    "r": _RADIUS,
    "eps": "answers are exact, and a radius is radius= of tonari.radius_search",
    "min_similarity": _SIMILAR,
    "threshold": "a threshold is radius= for distances and min_similarity= for similarities, of tonari.radius_search, "
    "radius_graph and pairs",
    "p": "a Minkowski distance is named with its p: metric='minkowski:3'",
    "metric_params": "weights of the columns are weights=, VI= and V= are arguments of their own, and p is part of the "
    "name: metric='minkowski:3'",
    "w": "weights of the columns are weights=",
    "cov": "the covariance of metric='mahalanobis' is covariance=",
    "metric": "the metric is that of the Index or graph",
    "algorithm": "use method=",
    "exclude_within": "tonari.search, knn_graph, pairs, radius_search, radius_count and radius_graph have windows; "
    "with an Index, pass the ids near each query's as exclude=",
    "ties": "tonari.search and knn_graph take ties=; with an Index, use radius_search(queries, radius) where radius is "
    "the last column of the distances that search finds",
    "k": "everything within the radius is found; max_neighbors= limits how many",
    "return_distance": "distances and indices are always returned",
    "min_cluster_size": "the tree is made without it: tonari.mutual_reachability_tree(...).clusters(min_cluster_size)",
    "leaf_size": "trees choose the size of their leaves themselves",
    "random_state": "use seed=, where a method is random",
}


def attribute_error(owner: str, name: str, what: str) -> AttributeError:
    """Return the AttributeError for an attribute that a module, or an object of a class, does not have."""
    hint = ATTRIBUTES.get(owner, {}).get(name)
    return AttributeError(f"{what} has no attribute {name!r}" + (f"; {hint}" if hint else ""))


def missing_from(module: str) -> Callable[[str], Any]:
    """Return a ``__getattr__`` for a module, which raises errors with hints."""

    def missing(name: str) -> Any:
        raise attribute_error(module, name, f"module {module!r}")

    return missing


class Hinted:
    """A base class whose AttributeErrors contain the hints of `ATTRIBUTES` for attributes of other libraries."""

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        kind = type(self)
        owner = next((base.__name__ for base in kind.__mro__ if base.__name__ in ATTRIBUTES), kind.__name__)
        raise attribute_error(owner, name, f"{kind.__name__!r} object")


def argument_hint(name: str, known: Any = ()) -> str:
    """Return "; " and a hint for an unknown argument, such as its name in tonari; "" for an argument without a hint."""
    hint = ARGUMENTS.get(name, "")
    if name in ("radius", "r", "threshold", "min_similarity") and "radius" in known:
        hint = "a threshold is radius= or min_similarity="
    return f"; {hint}" if hint else ""


def unexpected(error: TypeError, verb: str, known: Any) -> TypeError | None:
    """Return a TypeError with a hint, to be raised instead of `error`; None if no hint exists for its argument."""
    found = re.search(r"got an unexpected keyword argument '(\w+)'", str(error))
    if found is None or found[1] in known:
        return None
    hint = argument_hint(found[1], known)
    return TypeError(f"{verb}() got an unexpected keyword argument {found[1]!r}{hint}") if hint else None
