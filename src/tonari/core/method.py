"""The interface of all methods; methods/registry.py registers one instance per name and device."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from tonari.core.errors import Unsupported
from tonari.core.plan import Plan
from tonari.core.problem import Problem
from tonari.core.process.progress import ProgressLike
from tonari.core.results.neighbors import Neighbors
from tonari.core.results.radius_neighbors import RadiusNeighbors, Within
from tonari.core.rows.listed import Listed

Quick: TypeAlias = Callable[[Any, Any], Any]


class GraphLists(NamedTuple):
    """The neighbour lists of a k-NN graph.

    Attributes
    ----------
    found : Neighbors of shape (n, k)
        The nearest other points of each point, on the same device as the points.
    report : optional
        The report of an approximate method about its run, such as its recall.
    seed : int, optional
        The random seed that the method used.
    """

    found: Neighbors
    report: Any = None
    seed: int | None = None


class Method(ABC):
    """A method of building k-NN graphs on one kind of device.

    Attributes
    ----------
    name, device : str
        For example "exact" and "cuda".
    exact : bool
        Whether results are always exact; other methods may miss neighbours.
    """

    name: ClassVar[str]
    device: ClassVar[str]
    exact: ClassVar[bool] = True

    @abstractmethod
    def refuses(self, problem: Problem) -> str | None:
        """Return a sentence with the reason why this method cannot solve a problem, or None if it can."""

    @abstractmethod
    def plan(self, problem: Problem, **given: Any) -> Any:
        """Plan a search or a graph; `given` has the plan's fields that the caller sets.

        Raises
        ------
        Unsupported
            The method cannot solve the problem; the message is the result of :meth:`refuses`.
        BudgetExceeded
            The problem does not fit into memory.
        ValueError
            The value of a field that the caller sets is invalid.
        """

    @abstractmethod
    def build_graph(
        self,
        points: Any,
        plan: Any,
        *,
        prepared: Any = None,
        start: Any = None,
        progress: ProgressLike = None,
        patience: float | None = None,
    ) -> GraphLists:
        """Find the k nearest other points of every point.

        Parameters
        ----------
        points : checked rows
        plan : Plan
        prepared : optional
            The prepared points of :meth:`SearchMethod.prepare`, if they exist already.
        start : int array or tensor of shape (n, any), optional
            Initial neighbours, -1 where one is missing, on the same device as the points; for methods that refine
            lists.
        progress : None, bool or callable(done, total)
        patience : float, optional
            A multiple of the work that the plan expects, after which an approximate method gives up.
        """


class Preparation(NamedTuple):
    """Prepared points, and the plan by which they were prepared."""

    plan: Any
    points: Any


class SearchMethod(Method):
    """A method that also finds the neighbours of queries.

    Attributes
    ----------
    filters : bool
        Whether searches within a radius can apply rules for the points that each query may find (`Within.allowed`).
    """

    filters: ClassVar[bool] = False

    def kind(self, problem: Problem, searched: int = 0) -> str:
        """Return the kind of preparation that a problem needs; prepared points fit all problems of one kind.

        `searched` is the number of queries that have been searched among these points so far.
        """
        return ""

    def prepare_kind(
        self, points: Any, problem: Problem, searched: int, before: Preparation | None, progress: ProgressLike = None
    ) -> Preparation:
        """Plan and prepare points for a kind of search that existing prepared points do not fit.

        `before` is the preparation for the first kind of search, if this method made it. It is returned again if a new
        preparation would be no better.
        """
        plan = self.plan(problem)
        return Preparation(plan, self.prepare(points, plan, progress))

    def warm(self, plan: Any, *, self_join: bool, progress: ProgressLike = None) -> int:
        """Compile the kernels that searches by `plan` launch; return the number of kernels, which is 0 on the CPU."""
        return 0

    @abstractmethod
    def prepare(self, points: Any, plan: Any, progress: ProgressLike = None) -> Any:
        """Prepare points for searches."""

    def held_bytes(self, prepared: Any, plan: Any) -> int:
        """Return the bytes that prepared points take between searches (on CUDA, on each device)."""
        return int(plan.packed_bytes + plan.copied_bytes)

    def release(self, prepared: Any) -> None:
        """Free data of prepared points that a later search can compute again; by default, nothing is freed."""

    @abstractmethod
    def search(
        self, queries: Any, prepared: Any, plan: Any, *, self_join: bool = False, progress: ProgressLike = None
    ) -> Neighbors:
        """Find the k nearest prepared points of every query, as NumPy arrays or tensors on the device of the queries.

        In a self-join the queries are the points, and no point is its own neighbour.
        """

    def find_within(self, request: Within, prepared: Any, plan: Any, progress: ProgressLike = None) -> RadiusNeighbors:
        """Find all prepared points whose returned distance is at most the limit of the query.

        For similarities, find all points whose value is at least the limit.

        Parameters
        ----------
        request : Within
        prepared
            The result of :meth:`prepare`.
        plan : Plan
            For the same problem with k = 1.
        progress : None, bool or callable(done, total)

        Returns
        -------
        RadiusNeighbors
            Lists in the order of (returned distance, index), on the device of the queries.
        """
        raise Unsupported(f"method={self.name!r} on {self.device} does not search within a radius")

    def count_within(self, request: Within, prepared: Any, plan: Any, progress: ProgressLike = None) -> Any:
        """Count the points that :meth:`find_within` would find: int64 of shape (m,), on the device of the queries."""
        raise Unsupported(f"method={self.name!r} on {self.device} does not count within a radius")

    def count_once(self, request: Within, points: Any, plan: Any) -> Any:
        """Prepare points for a single count, and count as :meth:`count_within` does."""
        return self.count_within(request, self.prepare(points, plan, False), plan, False)

    def search_listed(
        self,
        queries: Any,
        points: Any,
        k: int,
        metric: str,
        listed: Listed,
        *,
        threads: int | None = None,
        found: Neighbors | None = None,
    ) -> Neighbors:
        """Find for each query the k nearest among its listed points; the result is on the device of the queries.

        Parameters
        ----------
        queries, points : checked rows of shape (m, d) and (n, d), both arrays or both tensors on one device
        k : int
        metric : str
        listed : Listed
            The list of points of each query, in host memory.
        threads : int, optional
            The number of threads on the CPU.
        found : Neighbors of shape (m, k), optional
            On the CPU, the arrays that receive the result. Default: new arrays.

        Returns
        -------
        Neighbors of shape (m, k)
            If a query has fewer than k listed points, the remaining entries have index -1 and distance inf (-inf for
            similarities).
        """
        raise Unsupported(f"method={self.name!r} on {self.device} compares no lists")

    def count_listed(
        self,
        queries: Any,
        points: Any,
        limits: Any,
        metric: str,
        listed: Listed,
        *,
        threads: int | None = None,
    ) -> npt.NDArray[np.int64]:
        """Count the listed points within the limit of each query; see :meth:`search_listed`."""
        raise Unsupported(f"method={self.name!r} on {self.device} counts no lists")

    def prepare_within(self, points: Any, plan: Any, progress: ProgressLike = None) -> Any:
        """Prepare points for radius searches, in which the queries of the plan may be searched block by block."""
        return self.prepare(points, plan, progress)

    def search_once(
        self, queries: Any, points: Any, plan: Any, *, self_join: bool = False, progress: ProgressLike = None
    ) -> Neighbors:
        """Prepare points for a single search, and search them; in a self-join, the points are also the queries."""
        prepared = self.prepare(points, plan, progress)
        return self.search(queries, prepared, plan, self_join=self_join, progress=progress)

    def search_unchecked(
        self, queries: Any, points: Any, plan: Any, *, progress: ProgressLike = None
    ) -> Neighbors | None:
        """Search as :meth:`search_once` does, but check the values of all rows during the search, not before it.

        Returns None if a value is not finite, or if the method cannot check values during a search.
        """
        return None

    def quick_search(self, queries: Any, points: Any, prepared: Any, plan: Any) -> Quick | None:
        """Return a function that repeats this search for similar rows in one native call; None if that is impossible.

        Parameters
        ----------
        queries, points : rows
            Examples of the rows of later searches, which have the same shapes and dtypes. The function takes both
            arrays, and checks that all values are finite, except those of prepared points.
        prepared : optional
            The prepared points, if later searches are among the same points.
        plan : Plan

        Returns
        -------
        function(queries, points) -> (Neighbors, bool) or None
            The function returns None if a value may have to be refused; the caller then searches with all checks. The
            bool is True if all distances are far from overflow and underflow in float32.
        """
        return None

    def quick_within(self, request: Within, points: Any, prepared: Any, plan: Any) -> Quick | None:
        """Return a function like that of :meth:`quick_search` for radius searches without rules and with one limit.

        Its first result is a RadiusNeighbors instead of a Neighbors.
        """
        return None

    def quick_count(self, request: Within, points: Any, prepared: Any, plan: Any) -> Quick | None:
        """Return a function like that of :meth:`quick_within` that only counts the points, or None."""
        return None

    def build_graph(
        self,
        points: Any,
        plan: Plan,
        *,
        prepared: Any = None,
        start: Any = None,
        progress: ProgressLike = None,
        patience: float | None = None,
    ) -> GraphLists:
        if prepared is None:
            return GraphLists(self.search_once(points, points, plan, self_join=True, progress=progress))
        return GraphLists(self.search(points, prepared, plan, self_join=True, progress=progress))


class TreeMethod(SearchMethod):
    """A search method whose running time depends on the data, and can be estimated from the visits of a few queries."""

    def prepare_once(self, points: Any, plan: Any, progress: ProgressLike = None) -> Any:
        """Prepare points for a single search with the plan's k.

        A point may be left out if the copies of its row that precede it already fill every answer it could be in.
        """
        return self.prepare(points, plan, progress)

    @abstractmethod
    def visits(self, queries: Any, prepared: Any, plan: Any) -> tuple[float, float, float]:
        """Search `queries`, and return the mean visits of a query: the counts of leaves, of nodes, and of points."""
