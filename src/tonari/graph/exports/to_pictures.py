"""The methods of KNNGraph that show it: a page in HTML, plots, and tables in notebooks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tonari import inputs
from tonari.core.results import html
from tonari.graph.lists import Lists
from tonari.graph.page.contents import contents
from tonari.graph.page.template import render
from tonari.graph.plots import Plots


class ToPictures:
    """Views of a graph: a page, plots and a table."""

    if TYPE_CHECKING:

        @property
        def lists(self) -> Lists:
            """The graph's neighbour lists and properties, as a plain internal record."""

    def to_html(
        self,
        points: Any = None,
        *,
        title: str = "k-nearest-neighbour graph",
        sample: int = 1000,
        seed: int = 0,
        threads: int | None = None,
    ) -> str:
        """Return a page about the graph: one HTML document without scripts, which loads nothing from a network.

        The page shows the distances to the nearest and the k-th neighbours, duplicates, the local intrinsic dimension
        (Levina and Bickel's estimate), hubs (the k-occurrence and its skewness), connected components, the recall, and
        a map of at most 2,000 points of the largest component. For a graph that :func:`tonari.knn_graph` has just built
        it also shows the `record`: the choices and attempts of that call. ``tonari report`` writes the page of a saved
        graph. SciPy is required.

        Parameters
        ----------
        points : array of shape (n, d), optional
            The points of the graph. If they are given, the recall is measured on a random sample of rows; otherwise the
            page shows the recall of the graph's report, if it has one.
        title : str
            The heading.
        sample : int
            Number of rows to measure.
        seed : int
            Seed of the random choice of these rows and of the points on the map.
        threads : int, optional
            As for :meth:`recall`.

        Raises
        ------
        ImportError
            SciPy is not installed.
        ValueError
            As for :meth:`recall`, if there are points.

        Examples
        --------
        >>> import numpy as np, tonari
        >>> points = np.random.default_rng(0).standard_normal((100, 3), dtype=np.float32)
        >>> page = tonari.knn_graph(points, k=5).to_html(points, title="a cloud")
        >>> "<h1>a cloud</h1>" in page
        True
        """
        return render(contents(self.lists, points, sample=sample, seed=seed, threads=threads), title)

    @property
    def plot(self) -> Plots:
        """Plots with matplotlib: ``graph.plot.distances()``, ``graph.plot.hubness()`` and ``graph.plot.map()``."""
        return Plots(self.lists)

    def _repr_html_(self) -> str:
        """Return a table of the graph's properties for notebooks; neighbours are not read."""
        lists = self.lists
        rows = [("points", f"{lists.n:,}"), ("columns", f"{lists.k:,}{' with self' if lists.include_self else ''}")]
        rows += [("metric", lists.metric), ("method", lists.method)]
        if lists.seed is not None:
            rows.append(("seed", str(lists.seed)))
        if lists.filters:
            rows.append(("filters", ", ".join(lists.filters)))
        kinds = " and ".join(inputs.name_of_dtype(part) for part in (lists.found.indices, lists.found.distances))
        rows.append(("dtypes", kinds))
        if lists.report is not None:
            rows.append(("report", str(lists.report)))
        return html.table(rows)
