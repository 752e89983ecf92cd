"""The interface by which routes search one part of a search (rows/part.py); a whole search is a single part.

Every route has a function ``search_part(queries, prepared, plan, place, bar)``. ``routes/multi_gpu.py`` calls it for
each device, and ``search_x`` of the route calls it for the whole search.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from tonari.core.process.progress import Counter, Progress, ProgressLike
from tonari.core.results.neighbors import Neighbors
from tonari.exact.cuda.plan import CudaPlan
from tonari.exact.cuda.rows.part import Place
from tonari.exact.report import Report

SearchPart: TypeAlias = Callable[[Any, Any, CudaPlan, Place, Counter], tuple[Neighbors, Report]]


def search_whole(
    search_part: SearchPart, queries: Any, prepared: Any, plan: CudaPlan, self_join: bool, progress: ProgressLike
) -> tuple[Neighbors, Report]:
    """Search all points for all queries as a single part, with progress."""
    with Progress(progress, total=plan.m * plan.n, seconds=plan.seconds, label="neighbours") as bar:
        return search_part(queries, prepared, plan, Place(self_join=self_join), bar)
