"""A decision: the method that answers a call, its plan and the reason, with functions that run it.

A method makes further choices while it runs, such as the columns of a screen; ``tonari.core.trail`` records them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from tonari.core.errors import Unsupported
from tonari.core.method import GraphLists, Method
from tonari.core.plan import Plan
from tonari.core.process.progress import ProgressLike
from tonari.core.results.neighbors import Neighbors
from tonari.core.results.radius_neighbors import RadiusNeighbors, Within
from tonari.core.trail import current
from tonari.methods import tuning


class Decision(NamedTuple):
    """The method that answers a call, its plan, and the basis of the decision.

    Attributes
    ----------
    method : Method
    plan : Plan
    prepared : optional
        The prepared points, if they were prepared to make the decision.
    seconds : float
        Expected duration, given what is known about the data.
    reason : str
        The reason for this method; "" if the caller named it.
    instead : Decision, optional
        The fallback that is run if the method does not reach the recall of its plan.
    by_data : bool
        Whether the decision depends on the values of the rows, in addition to the sizes.
    """

    method: Any
    plan: Any
    prepared: Any = None
    seconds: float = 0.0
    reason: str = ""
    instead: Decision | None = None
    by_data: bool = False

    @property
    def patience(self) -> float | None:
        """The work, in multiples of the planned work, after which the fallback is run; None without a fallback.

        The number depends only on expected durations, so that measured times never decide which graph is built.
        """
        return None if self.instead is None else tuning.DESCENT_PATIENCE * self.instead.seconds / self.plan.seconds

    def _begun(self) -> None:
        """Add the decision to the record of the call, if the call is recorded."""
        record = current.get()
        if record is not None:
            record.planned(self.method.name, self.reason, self.plan)

    def search(self, queries: Any, points: Any, progress: ProgressLike, *, self_join: bool = False) -> Neighbors:
        """Search the decision's prepared points; if it has none, prepare `points` for this search alone."""
        self._begun()
        if self.prepared is None:
            run, held = self.method.search_once, points
        else:
            run, held = self.method.search, self.prepared
        found: Neighbors = run(queries, held, self.plan, self_join=self_join, progress=progress)
        return found

    def search_unchecked(self, queries: Any, points: Any, progress: ProgressLike) -> Neighbors | None:
        """Search rows whose values have not been checked.

        See :meth:`tonari.core.method.SearchMethod.search_unchecked`.
        """
        self._begun()
        found: Neighbors | None = self.method.search_unchecked(queries, points, self.plan, progress=progress)
        return found

    def build_graph(self, points: Any, start: Any, progress: ProgressLike) -> GraphLists:
        """Build the graph of points, starting from the initial neighbours `start` if it is not None."""
        self._begun()
        lists: GraphLists = self.method.build_graph(
            points, self.plan, prepared=self.prepared, start=start, progress=progress, patience=self.patience
        )
        return lists

    def find_within(self, request: Within, progress: ProgressLike) -> RadiusNeighbors:
        """Find all prepared points that are within the limits of a request."""
        self._begin_within(request)
        found: RadiusNeighbors = self.method.find_within(request, self.prepared, self.plan, progress)
        return found

    def count_within(self, request: Within, progress: ProgressLike) -> Any:
        """Count the prepared points that are within the limits of a request."""
        self._begin_within(request)
        return self.method.count_within(request, self.prepared, self.plan, progress)

    def _begin_within(self, request: Within) -> None:
        self._begun()
        if request.allowed is not None and not self.method.filters:
            name, device = self.method.name, self.method.device
            raise Unsupported(f"method={name!r} on {device} applies no rules within a radius")


def by_plan(method: Method, plan: Plan, prepared: Any = None, reason: str = "") -> Decision:
    """Return the decision to run a method with a plan, whose expected duration becomes that of the decision."""
    return Decision(method, plan, prepared, plan.seconds, reason)
