"""tonari for big-ann-benchmarks: exact search on the CPU for the k nearest points, or for all within a radius."""

from benchmark.algorithms.base import BaseANN
from benchmark.datasets import DATASETS

import tonari

# The benchmark's name of a metric -> tonari's name. In the benchmark, Euclidean radii are squared, like FAISS's
# distances.
METRICS = {"euclidean": "sqeuclidean", "ip": "inner_product", "angular": "cosine"}


class TonariExact(BaseANN):
    """An algorithm of big-ann-benchmarks that prepares a `tonari.Index` for the data set."""

    def __init__(self, metric, index_params):
        if metric not in METRICS:
            raise NotImplementedError(f"metric {metric!r}: expected one of {', '.join(METRICS)}")
        if index_params:
            raise ValueError(f"args: there is nothing to set, got {index_params!r}")
        self._metric = METRICS[metric]
        self.name = "tonari"

    def track(self):
        return "ood"

    def fit(self, dataset):
        self._index = tonari.Index(DATASETS[dataset]().get_dataset(), metric=self._metric)

    def load_index(self, dataset):
        return False  # no index files are written: packing the points again is faster than reading packed points

    def query(self, X, k):
        self.res = self._index.search(X, k).indices

    def range_query(self, X, radius):
        if self._metric == "inner_product":
            found = self._index.radius_search(X, min_similarity=radius)
        else:
            found = self._index.radius_search(X, radius)
        self.res = found.indptr, found.distances, found.indices
