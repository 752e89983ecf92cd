"""Calls as users write them, which only mypy reads: a wrong name or type of a shared option must be an error.

Strict mypy also reports unneeded `ignore` comments, so `make lint` fails if mypy accepts a wrong call below.
"""

from __future__ import annotations

from typing import Any

import tonari


def right(rows: Any, options: dict[str, Any]) -> None:
    """Call functions with options that they support."""
    found: tonari.Neighbors = tonari.search(rows, rows, 3, metric="l1", weights=[1.0], threads=1, memory="1 GB")
    tied: tonari.RadiusNeighbors = tonari.search(rows, rows, 3, ties="all", device=["cuda:0", "cuda:1"])
    graph: tonari.KNNGraph = tonari.knn_graph(rows, found.indices.shape[1], progress=print, **options)
    within: tonari.RadiusNeighbors = tonari.Index(rows).radius_search(rows, 1.0, threads=2)
    graph.add(rows, tied.distances, device="cpu", memory=within.indptr.nbytes)


def wrong(rows: Any) -> None:
    """Call functions with options that they do not support."""
    tonari.search(rows, rows, 3, thread=1)  # type: ignore[call-overload]
    tonari.radius_count(rows, rows, 1.0, thread=1)  # type: ignore[call-arg]
    tonari.radius_count(rows, rows, 1.0, threads="1")  # type: ignore[arg-type]
    tonari.farthest(rows, rows, 3, device="cuda")  # type: ignore[call-arg]
    tonari.Index(rows).search(rows, 3, memory=1)  # type: ignore[call-arg]
