"""Build the exact k-NN graph of 10,000 real SIFT descriptors and check it against plain float64 arithmetic.

python examples/demo.py
"""

from __future__ import annotations

import logging
import time
from pathlib import Path

import numpy as np

import tonari
import tonari.io
from tonari.metrics.reference import brute

HERE = Path(__file__).parent
OUTPUT = HERE.parent / "demo-output"
K = 10


def main() -> None:
    """Build the graph, check it and save it."""
    logging.basicConfig(level=logging.INFO, format="  %(message)s")
    path = HERE / "sift-photo-10k.bvecs"
    points = tonari.io.read(path).astype(np.float32)
    n, d = points.shape
    print(f"{path.name}: {n} descriptors of {d} dimensions, from photographs inside scikit-image and scikit-learn")
    print(f"\nthe plan:\n{tonari.plan(n, n, d, K)}\n")

    started = time.perf_counter()
    graph = tonari.knn_graph(points, K)
    seconds = time.perf_counter() - started
    print(f"{graph}\nexact graph in {seconds:.3f} s: {n * n / seconds / 1e9:.2f} billion distances a second")

    rows = np.random.default_rng(0).choice(n, 500, replace=False)
    truth = brute(points[rows], points, K, self_ids=rows)
    same = np.array_equal(truth.indices, graph.indices[rows]) and np.array_equal(truth.distances, graph.distances[rows])
    print(f"{len(rows)} random rows against float64 brute force: {'identical, bit for bit' if same else 'DIFFERENT'}")

    OUTPUT.mkdir(exist_ok=True)
    graph.save(OUTPUT / "graph.npz")
    print(f"saved to {OUTPUT / 'graph.npz'}; first row: {graph.indices[0].tolist()}")
    if not same:
        raise SystemExit("the graph differs from the reference")


if __name__ == "__main__":
    main()
