"""Graphs of rows like text embeddings, for growing n: seconds against n, on a CPU and on a GPU.

The rows have 768 columns (:mod:`benchmarks.harness.datasets.topics`), k is 10, and the time is that of the whole call,
with the preparation of the points. Both suites of exact search have these cases and draw the same figure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..harness.plots import Figure, Panel, where
from ..harness.rows import Row, newest

CASE = "graph-n"
ON_CPU = (3_000, 10_000, 30_000, 100_000)
ON_CUDA = (10_000, 30_000, 100_000, 300_000, 1_000_000, 3_000_000)
NAMES = {
    "sklearn": "scikit-learn",
    "faiss": "faiss",
    "torch float32": "torch",
    "cuvs": "cuVS",
    "flash float32": "flashlib",
    "tonari": "tonari",
}


def shapes(sizes: Sequence[int]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the name of each case, with its number of points on a device."""
    for n in sizes:
        yield f"{CASE}{n}", {"n": n, "m": n, "d": 768, "k": 10, "data": "topics", "graph": True}


def figures(rows: Sequence[Mapping[str, Any]]) -> Iterator[Figure]:
    """Draw seconds against n, from the newest run of each case; one figure for each device."""
    timed = [row for row in rows if row["case"].startswith(CASE) and row["seconds_median"] and row["scale"] == 1]
    for device in ("cpu", "cuda"):
        own: list[Row] = newest([row for row in timed if row["device"] == device], "case")
        if own:
            curves = {
                name: [(row["n"], row["seconds_median"]) for row in own if row["who"] == who]
                for who, name in NAMES.items()
            }
            panel = Panel("time of an exact k-NN graph", "rows", "seconds", curves, base=10)
            heading = f"{own[-1]['d']} columns like embeddings, k = {own[-1]['k']}; {where(own[-1])}"
            yield Figure(f"graph-against-n-{device}", heading, own, [panel])
