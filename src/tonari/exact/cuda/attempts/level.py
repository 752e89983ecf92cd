"""A level: a way to search again the rows whose answers are not yet certified as exact."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

from tonari.core.results.neighbors import Neighbors

# Takes queries and the row number of each query's own point (or None). Returns the neighbours, and for each query 1 if
# its answer is certified as exact, else 0.
Again: TypeAlias = Callable[[Any, Any], tuple[Neighbors, Any]]


class Level(NamedTuple):
    """A way to search again the rows that are not yet certified as exact.

    It uses more groups per row, or a higher precision.

    Attributes
    ----------
    name : str
        The name of the level in reports.
    begin : callable
        Packs the rows at the precision of the level, and returns the function that searches.
    end : callable
        Drops all packed copies that no later level reads.
    """

    name: str
    begin: Callable[[], Again]
    end: Callable[[], None]
