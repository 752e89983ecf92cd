"""The checked arguments of a radius search, and cached functions that answer equal calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy.typing as npt

from tonari import inputs
from tonari.core.results.radius_neighbors import RadiusNeighbors, Within
from tonari.filters.arguments import Given
from tonari.filters.searches import asking
from tonari.methods import repeated
from tonari.methods.call import Call, Radius
from tonari.methods.decision import Decision
from tonari.methods.places.points import DecidedPoints, Points, none_counted, none_within_radius


class Verb(NamedTuple):
    """How a public function computes its result from prepared points; cached, so that equal calls need no planning.

    Attributes
    ----------
    run : function(DecidedPoints, queries, limits) -> answer
    counts : bool
        Whether points are counted, not listed.
    own : bool
        Whether the queries are the points, and no point finds itself.
    later : bool
        Whether the queries are the points, and each finds only points after itself.
    finish : function(RadiusNeighbors) -> answer, optional
        With `own`, the conversion of a native call's lists to the result; default: none.
    """

    run: Callable[[DecidedPoints, Any, npt.NDArray[Any]], Any]
    counts: bool = False
    own: bool = False
    later: bool = False
    finish: Callable[[RadiusNeighbors], Any] | None = None


class WithinCall(NamedTuple):
    """The checked arguments of a radius search.

    Attributes
    ----------
    queries : checked rows of shape (m, d)
    points : Points
    limits : array of shape (m,)
        See :func:`tonari.core.results.radius_neighbors.limits_for`.
    """

    queries: Any
    points: Points
    limits: npt.NDArray[Any]

    @classmethod
    def of(cls, call: Call, queries: Any, points: Any, radius: Radius) -> WithinCall:
        """Check the rows and the radii that a caller passed to a public function."""
        rows, base = call.both(queries, points)
        limits = call.limits(base, rows, **radius._asdict())
        return cls(rows, Points(base, call), limits)

    def decided(self, verb: Verb | None) -> WithinCall:
        """Choose the method and the plan of a search without filters, and cache functions to repeat the call.

        Without `verb` (how the public function computes its result) or without queries, return this record unchanged.
        """
        rows, those, limits = self
        if verb is None or not len(rows):
            return self
        made = those.decided_within(rows, limits, those.call.progress)
        if not those.call.place.devices:
            self._keep(verb, made.decision._replace(prepared=None))  # a repeated call passes its own points
        return self._replace(points=made)

    def _keep(self, verb: Verb, decision: Decision) -> None:
        rows, (base, call), limits = self.queries, (self.points.rows, self.points.call), self.limits

        def again(queries: Any, points: Any = None) -> Any:
            asked, among = call.both(queries, queries if points is None else points)
            prepared = decision.method.prepare_within(among, decision.plan, call.progress)
            return verb.run(DecidedPoints(among, call, decision._replace(prepared=prepared)), asked, limits)

        request = Within(rows, limits, range(len(rows)) if verb.own else None, verb.later)
        if verb.counts:
            quick = repeated.quick_count(call, decision, request, base)
        else:
            quick = repeated.quick_within(call, decision, request, base)
        if quick is not None and verb.own:
            quick = _of_itself(quick, verb.finish)
        repeated.keep(decision, (base,) if verb.own else (rows, base), quick, again)

    def found(self, given: Given, most: Any, *, self_join: bool = False) -> RadiusNeighbors:
        """Find the allowed points within the limit of every query, or only the `most` nearest of these."""
        most = None if most is None else inputs.check_count(most, "max_neighbors")
        rules = given.rules(len(self.queries), len(self.points), own=self_join)
        if not len(self.queries):
            return none_within_radius(self.points.problem(self.queries, 1), self.points.call.method)
        if rules is not None or most is not None:
            self.points.refuse_unsupported(self.queries)
        progress = self.points.call.progress
        return asking.within(self.points, self.queries, self.limits, rules, most, progress, self_join=self_join)

    def counted(self, given: Given) -> Any:
        """Count the allowed points within the limit of every query."""
        rows, those, limits = self
        rules = given.rules(len(rows), len(those))
        if not len(rows):
            return none_counted(those.problem(rows, 1), those.call.method)
        if rules is not None:
            those.refuse_unsupported(rows)
        return asking.count(those, rows, limits, rules, those.call.progress)


def _of_itself(quick: repeated.Way, finish: Callable[[RadiusNeighbors], Any] | None) -> repeated.Way:
    """Turn a function of queries and points into a function of points, which are the queries too."""

    def joined(points: Any) -> Any:
        found = quick(points, points)
        return found if finish is None or found is None else finish(found)

    return joined
