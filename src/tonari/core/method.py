"""What a method is: one instance per name and device, registered in methods/registry.py."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, NamedTuple

from tonari.core.neighbors import Neighbors
from tonari.core.plan import Plan
from tonari.core.problem import Problem
from tonari.core.progress import ProgressLike


class GraphLists(NamedTuple):
    """The neighbours of every point among the others.

    Attributes
    ----------
    found : Neighbors of shape (n, k)
        Beside the points.
    report : optional
        Of an approximate method: how far it has come.
    seed : int, optional
        Of what it drew.
    """

    found: Neighbors
    report: Any = None
    seed: int | None = None


class Method(ABC):
    """A way to build k-NN graphs.

    Attributes
    ----------
    name, device : str
        Such as "exact" and "cuda".
    exact : bool
        Whether no neighbour can be missing.
    """

    name: ClassVar[str]
    device: ClassVar[str]
    exact: ClassVar[bool] = True

    @abstractmethod
    def refuses(self, problem: Problem) -> str | None:
        """Why this method cannot solve a problem, in a sentence; None if it can."""

    @abstractmethod
    def plan(self, problem: Problem, **given: Any) -> Any:
        """The plan for a problem, with the fields that a caller sets.

        Raises
        ------
        Unsupported
            With the sentence of :meth:`refuses`.
        BudgetExceeded
            There is too little memory.
        ValueError
            A field cannot be set so.
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
        """The k nearest others of every point.

        Parameters
        ----------
        points : checked rows
        plan : Plan
        prepared : optional
            The points as the method prepared them already.
        start : int array or tensor of shape (n, any), optional
            Neighbours to begin with, -1 where one is missing, beside the points; for methods that refine lists.
        progress : None, bool or callable(done, total)
        patience : float, optional
            Seconds after which a method that may miss neighbours gives up.
        """


class SearchMethod(Method):
    """A method that also answers queries."""

    def kind(self, problem: Problem) -> str:
        """What tells apart points prepared for one search from those for another: they serve all of the same kind."""
        return ""

    @abstractmethod
    def prepare(self, points: Any, plan: Any, progress: ProgressLike = None) -> Any:
        """Points made ready for searches."""

    @abstractmethod
    def search(
        self, queries: Any, prepared: Any, plan: Any, *, self_join: bool = False, progress: ProgressLike = None
    ) -> Neighbors:
        """The answer, beside the queries: NumPy arrays in host memory or tensors on their device.

        In a self-join the queries are the points, and none finds itself.
        """

    def search_once(
        self, queries: Any, points: Any, plan: Any, *, self_join: bool = False, progress: ProgressLike = None
    ) -> Neighbors:
        """The same for points that are prepared for this search alone; in a self-join they are the queries."""
        prepared = self.prepare(points, plan, progress)
        return self.search(queries, prepared, plan, self_join=self_join, progress=progress)

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
    """A method whose work depends on the data, which a few queries can tell."""

    @abstractmethod
    def visits(self, queries: Any, prepared: Any, plan: Any) -> tuple[float, float, float]:
        """What a query looks at, on average over some: leaves, nodes, points."""
