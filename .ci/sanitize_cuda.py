"""Runs small searches through every GPU kernel, each checked against float64, under compute-sanitizer.

    compute-sanitizer --tool memcheck  python .ci/sanitize_cuda.py
    compute-sanitizer --tool racecheck python .ci/sanitize_cuda.py

The first shapes are large enough for sampled thresholds and candidate lists: with 128 columns (for which Hopper has its
own kernel), in one piece, in two, and streamed. The other shapes use the minima of all groups; those with one and three
queries use two kernels of their own.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import torch

import tonari
from tonari.metrics import BIT_METRICS, METRICS, get_metric
from tonari.metrics.reference import brute

DEVICE = "cuda"
CHECKED = 5  # queries of each search
# n, m, d, k, metric, dtype
SEARCHES = (
    (40_000, 600, 128, 10, "euclidean", "float32"),
    (40_001, 530, 33, 7, "euclidean", "float32"),
    (36_000, 520, 96, 5, "euclidean", "float32"),
    (33_000, 520, 200, 10, "euclidean", "float32"),
    (3_000, 7, 16, 10, "euclidean", "float32"),
    (1_000, 70, 300, 1_000, "euclidean", "float32"),
    *((2_000, 40, 19, 5, metric, "float32") for metric in METRICS),
    (30_001, 1, 128, 10, "euclidean", "float32"),
    (2_000, 3, 300, 32, "correlation", "float32"),
    (2_000, 40, 20, 5, "euclidean", "float64"),
    (2_000, 40, 20, 5, "euclidean", "int8"),
    *((3_001, 70, 21, 5, metric, "uint8") for metric in BIT_METRICS),
)


def rows(n: int, d: int, metric: str, dtype: str, seed: int) -> Any:
    """Make random rows on the device that a metric accepts."""
    made = np.random.default_rng(seed).standard_normal((n, d))
    if get_metric(metric).bits:
        return torch.from_numpy(made.view(np.uint8)[:, :d].copy()).to(DEVICE)
    if METRICS[metric].nonnegative:
        made = np.abs(made)
    if dtype == "int8":
        made = (30 * made).clip(-120, 120)
    return torch.from_numpy(made.astype(dtype)).to(DEVICE)


def check(found: Any, queries: Any, points: Any, k: int, metric: str) -> None:
    """Search, and check that the neighbours of the first queries equal those of the reference."""
    expected = brute(queries[:CHECKED].cpu().numpy(), points.cpu().numpy(), k, metric)
    np.testing.assert_array_equal(found.indices[:CHECKED].cpu().numpy(), expected.indices)
    np.testing.assert_array_equal(found.distances[:CHECKED].cpu().numpy(), expected.distances)


def main() -> int:
    for n, m, d, k, metric, dtype in SEARCHES:
        points, queries = rows(n, d, metric, dtype, 0), rows(m, d, metric, dtype, 1)
        check(tonari.search(queries, points, k, metric=metric), queries, points, k, metric)
        print(f"{m} x {n} x {d}, k = {k}, {metric}, {dtype}: right", flush=True)
    copies = rows(50, 12, "euclidean", "float32", 2).repeat(60, 1)  # ties that no bound resolves
    check(tonari.search(copies[:40], copies, 6), copies[:40], copies, 6, "euclidean")
    print("copies: right")
    return 0


if __name__ == "__main__":
    sys.exit(main())
