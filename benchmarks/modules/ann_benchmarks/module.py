"""tonari for ann-benchmarks: exact search, on the CPU."""

import numpy as np
from ann_benchmarks.algorithms.base.module import BaseANN

import tonari

METRICS = {"euclidean": "euclidean", "angular": "cosine"}


class Tonari(BaseANN):
    """An algorithm of ann-benchmarks: a `tonari.Index`, whose answers to single queries and batches are equal."""

    def __init__(self, metric):
        if metric not in METRICS:
            # ann-benchmarks expects this exception for metrics that an algorithm does not support.
            raise NotImplementedError(f"metric {metric!r}: expected one of {', '.join(METRICS)}")
        self._metric = METRICS[metric]
        self.name = f"tonari({metric})"

    def fit(self, X):
        self._index = tonari.Index(np.ascontiguousarray(X, dtype=np.float32), metric=self._metric)

    def query(self, q, n):
        return self._index.search(np.asarray(q, dtype=np.float32)[None], n).indices[0]

    def batch_query(self, X, n):
        self.res = self._index.search(np.asarray(X, dtype=np.float32), n).indices
