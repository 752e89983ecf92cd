"""What all verbs of `tonari.Index` rest on: its state, which updates replace, and rows checked for it."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy.typing as npt

from tonari import inputs
from tonari.api.segment import Segment
from tonari.api.state import State
from tonari.core.errors import Unsupported
from tonari.core.progress import ProgressLike
from tonari.filters.arguments import rules_of
from tonari.filters.rules import Rules
from tonari.methods.place import Place, problem_of
from tonari.methods.registry import search_method
from tonari.metrics.radius import limits_of


class IndexBase:
    """The fields of :class:`tonari.Index`, and what its verbs have in common."""

    d: int
    metric: str
    _asked: str
    _memory: int | None
    _place: Place
    _state: State
    _threads: int | None

    def _segment(
        self, rows: Any, taken: int = 0, method: str | None = None, progress: ProgressLike = False, chosen: Any = None
    ) -> Segment:
        """Prepare checked rows, as all points of this Index are, by a method if one is named."""
        given: dict[str, Any] = {"threads": self._threads, "memory": self._memory, "progress": progress}
        return Segment(self._place, rows, self.metric, method or self._asked, **given, taken=taken, chosen=chosen)

    def _frozen(self) -> Any:
        """Return the Index as it is now, which later updates do not change."""
        raise NotImplementedError

    def _rules(self, now: State, m: int, given: dict[str, Any]) -> Rules:
        """Check what m queries may find; arrays are about ids."""
        noun = "points" if now.next_id == now.n else f"ids given so far (Index.next_id), of which {now.n} are left"
        return rules_of(m, now.next_id, **given, noun=noun)

    def _check_method(self, now: State, k: int) -> None:
        """Refuse what the named method cannot do for all points together, as an Index made anew does."""
        if self._asked == "auto":
            return
        problem = problem_of(self._place, now.sample, now.sample[:1], 1, self.metric)
        refused = search_method(self._asked, self._place.device).refuses(dataclasses.replace(problem, n=now.n, k=k))
        if refused is not None:
            raise Unsupported(refused)

    def _checked(
        self, now: State, queries: Any, radius: Any, similarity: Any, closed: Any
    ) -> tuple[Any, npt.NDArray[Any]]:
        """Return the queries, checked, and the limit of each."""
        rows = self._place.rows(queries, "queries", self.metric)
        inputs.same_width(rows, now.sample)
        names = inputs.name_of_dtype(rows), inputs.name_of_dtype(now.sample)
        value = "float64" if "float64" in names else "float32"
        within = {"radius": radius, "min_similarity": similarity, "closed": closed}
        return rows, limits_of(self.metric, len(rows), value, **within)
