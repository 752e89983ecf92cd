"""Exact search compared with its peers: milliseconds against k and d, and seconds of graphs against n."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...harness.plots import Curves, Figure, Panel, where
from ...harness.rows import Row, newest
from .. import growth

# The name of a contestant in figures, by its name in rows.
NAMES = {
    "cuvs": "cuVS",
    "flash float32": "flash, float32",
    "flash float16": "flash, float16",
    "tonari": "tonari",
}
BY_K, BY_D = "search-k", "search-d"


def figures(rows: Sequence[Row]) -> Iterator[Figure]:
    """Return the figures of searches among a million points and of graphs, drawn from the newest run of each case."""
    yield from growth.figures(rows)
    timed = [row for row in rows if row["seconds_median"] and row["scale"] == 1 and row["who"] in NAMES]
    found = newest([row for row in timed if row["case"].startswith((BY_K, BY_D))], "case")
    if not found:
        return
    by_k = [row for row in found if row["case"].startswith(BY_K)]
    by_d = [row for row in found if row["case"].startswith(BY_D) or row["case"] == f"{BY_K}10"]
    panels = [
        Panel("10,000 x 1,000,000 x 128", "k", "ms", curves(by_k, "k")),
        Panel("10,000 x 1,000,000 x d, k = 10", "d", "ms", curves(by_d, "d")),
    ]
    yield Figure("exact_cuda-search", f"exact search; {where(found[-1])}, {found[-1]['commit']}", found, panels)


def curves(rows: Sequence[Row], axis: str) -> Curves:
    """Return the curve of each contestant: pairs of the column `axis` and the median milliseconds."""
    return {
        name: sorted((row[axis], row["seconds_median"] * 1e3) for row in rows if row["who"] == who)
        for who, name in NAMES.items()
    }
