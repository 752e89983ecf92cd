"""The record of a call: all of its arguments except the rows, checked once."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tonari import inputs
from tonari.core.problem import Problem
from tonari.core.process.caches import emptied_by
from tonari.core.process.progress import ProgressLike
from tonari.inputs.arguments import check_no_threads
from tonari.methods import tuning
from tonari.methods.options import Options
from tonari.methods.places.place import Place, place_for
from tonari.methods.registry import check_method, check_search_method
from tonari.metrics import Metric, get_metric
from tonari.metrics.problem import refuse_changed
from tonari.metrics.radius import limits_of


class Radius(NamedTuple):
    """The unchecked arguments of a search within a radius; :func:`tonari.radius_search` describes them."""

    radius: Any = None
    min_similarity: Any = None
    closed: Any = True


@dataclass(frozen=True, kw_only=True)
class Call:
    """The checked arguments of a call of a public function, apart from its rows, k and radii.

    Attributes
    ----------
    metric : Metric
    place : Place
        The CPU, or the CUDA devices of the search.
    method : str
        "auto", or the name of a method.
    threads, memory : int, optional
    progress : None, bool or callable(done, total)
    """

    metric: Metric
    place: Place
    method: str = "auto"
    threads: int | None = None
    memory: int | None = None
    progress: ProgressLike = None

    @classmethod
    def of(
        cls,
        given: dict[str, Any],
        options: Options,
        *,
        graph: bool = False,
    ) -> Call:
        """Check the arguments of a public function, and return them as a Call.

        Parameters
        ----------
        given : dict
            The caller's arrays, by the names that messages use for them.
        options : Options
        graph : bool
            Whether methods that only build graphs are accepted.
        """
        metric, method, threads, memory = options.metric, options.method, options.threads, options.memory
        key = None
        if threads is None and memory is None and options.device == "auto" and type(metric) is type(method) is str:
            key = metric, method, graph, _one_place(given)
            known = _calls.get(key)
            if known is not None:
                return known if options.progress is None else known.with_progress(options.progress)
        (check_method if graph else check_search_method)(method)
        place = place_for(options.device, **given)
        if place.devices:
            check_no_threads(threads, place.devices)
        call = cls(
            metric=get_metric(metric),
            place=place,
            method=method,
            threads=inputs.check_threads(threads),
            memory=inputs.parse_memory(memory),
        )
        if key is not None and key[-1] is not None and not call.metric.own:
            if len(_calls) >= tuning.KEPT_CALLS:
                _calls.clear()
            _calls[key] = call
        return call.with_progress(options.progress)

    def with_progress(self, progress: Any) -> Call:
        """Return the call with another `progress` argument, after checking it."""
        progress = inputs.check_progress(progress)
        return self if progress is self.progress else dataclasses.replace(self, progress=progress)

    def rows(self, x: Any, name: str) -> Any:
        """Check an array, and return it as rows that the place and the metric accept."""
        return self.place.rows(x, name, self.metric, self.threads)

    def both(self, queries: Any, points: Any) -> tuple[Any, Any]:
        """Check queries and points, which may be the same array, and return them as rows."""
        base = self.rows(points, "points")
        if queries is points:
            return base, base
        rows = self.rows(queries, "queries")
        if rows.shape[1] != base.shape[1]:
            inputs.same_width(rows, base)
        if self.metric.bits:
            inputs.same_bits(inputs.bool_columns(queries), inputs.bool_columns(points))
        return rows, base

    def problem(self, points: Any, queries: Any, k: Any, *, self_join: bool = False) -> Problem:
        """Return the Problem of a search for the k nearest points; if there are no queries, that of one query."""
        refuse_changed(self.metric)
        n, d = points.shape
        return Problem(
            n=n,
            m=max(1, len(queries)),
            d=d,
            k=inputs.check_k(k, n - self_join, without_self=self_join),
            dtype=inputs.name_of_dtype(points),
            query_dtype=inputs.name_of_dtype(queries),
            metric=self.metric.name,
            self_join=self_join,
            devices=self.place.devices,
            may_take_fewer=self.place.may_take_fewer,
            host_points=isinstance(points, np.ndarray),
            host_queries=isinstance(queries, np.ndarray),
            threads=self.threads,
            memory=self.memory,
        )

    def limits(self, points: Any, queries: Any, *, radius: Any, min_similarity: Any, closed: Any) -> npt.NDArray[Any]:
        """Return the limit on the distance of each query's neighbours; see :func:`tonari.metrics.radius.limits_of`."""
        wide = "float64" in (inputs.name_of_dtype(points), inputs.name_of_dtype(queries))
        within = {"radius": radius, "min_similarity": min_similarity, "closed": closed}
        return limits_of(self.metric, len(queries), "float64" if wide else "float32", **within)


def _one_place(given: dict[str, Any]) -> Hashable:
    """Return "host" if all arrays are NumPy arrays, the CUDA device of torch tensors, or None in any other case."""
    places = {_place_of(x) for x in given.values()}
    return places.pop() if len(places) == 1 else None


def _place_of(x: Any) -> Hashable:
    if type(x) is np.ndarray:
        return "host"
    torch = sys.modules.get("torch")
    return x.device if torch is not None and type(x) is torch.Tensor and x.is_cuda else None


_calls: dict[Hashable, Call] = {}
emptied_by(_calls.clear)
