"""The figure of the k-d tree and its peers: microseconds per query against d."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...harness.plots import Figure, Panel, where
from ...harness.rows import Row, newest

# The name of a contestant in the figure, by its name in rows.
NAMES = {
    "ckdtree": "cKDTree",
    "pykdtree": "pykdtree",
    "tonari exact": "tonari, brute force",
    "tonari kdtree": "tonari, k-d tree",
}


def figures(rows: Sequence[Row]) -> Iterator[Figure]:
    """Return the figure of searches of SIFT's components on a CPU, from the newest run of each case with peers."""
    searches = [row for row in rows if row["device"] == "cpu" and row["stage"] == "search" and row["scale"] == 1]
    timed = [row for row in searches if row["data"] == "sift" and row["seconds_median"] and row["who"] in NAMES]
    found = newest(timed, "case")
    if not any(row["who"] == "pykdtree" for row in found):
        return
    curves = {
        name: [(row["d"], 1e6 * row["seconds_median"] / row["m"]) for row in found if row["who"] == who]
        for who, name in NAMES.items()
    }
    panel = Panel("time of a search", "columns", "microseconds per query", curves, log_x=False)
    first = found[0]
    heading = f"{first['n']:,} points (leading components of SIFT), k = {first['k']}; {where(first)}"
    yield Figure("time-against-d", heading, found, [panel])
