"""Plots of a graph with matplotlib, which is imported when the first plot is drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tonari.graph.lists import Lists
from tonari.graph.spectral import spectral_map
from tonari.graph.statistics import Histogram, distances_at, histogram, hubness
from tonari.graph.structure import occurrence

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class Plots:
    """Plots of a graph, as :attr:`tonari.KNNGraph.plot`.

    Each method draws into `ax`, a ``matplotlib.axes.Axes``, or into new axes, and returns the axes. The plots show the
    same data as the page of :meth:`tonari.KNNGraph.to_html`. matplotlib is required (``pip install 'tonari[plot]'``).

    Examples
    --------
    >>> import numpy as np, tonari
    >>> points = np.random.default_rng(0).standard_normal((100, 3), dtype=np.float32)
    >>> tonari.knn_graph(points, k=5).plot
    Plots of 100 points: distances, hubness, map
    """

    def __init__(self, lists: Lists) -> None:
        self._lists = lists.on_host()

    def __repr__(self) -> str:
        return f"Plots of {self._lists.n:,} points: distances, hubness, map"

    def distances(self, ax: Axes | None = None) -> Axes:
        """Draw histograms of the distances to the nearest and to the k-th neighbours.

        The smallest and the largest 0.5 % of the values are not drawn.
        """
        ax = _axes(ax)
        for column, label in ((0, "nearest"), (-1, "k-th")):
            found = histogram(distances_at(self._lists, column))
            if found is not None:
                _stairs(ax, found, label)
        ax.set_xlabel(self._what())
        ax.set_ylabel("points")
        ax.legend(title="neighbour")
        return ax

    def hubness(self, ax: Axes | None = None) -> Axes:
        """Draw the histogram, on a logarithmic scale, of the k-occurrence: the number of lists that contain a point."""
        ax, counts = _axes(ax), occurrence(self._lists)
        found = histogram(counts, whole=True)
        if found is not None:
            _stairs(ax, found, None)
        ax.set_yscale("symlog", linthresh=1)
        ax.set_xlabel("lists that have a point (k-occurrence)")
        ax.set_ylabel("points")
        ax.set_title(f"skewness {hubness(counts).skewness:.3g}")
        return ax

    def map(self, ax: Axes | None = None, *, most: int = 2000, seed: int = 0, colors: Any = None) -> Axes:
        """Draw the Laplacian eigenmap of the largest component; it needs SciPy.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
        most : int
            Largest number of points to draw; a larger component is sampled at random.
        seed : int
            Seed of the sample.
        colors : array of shape (n,), optional
            A number for each point of the graph. Default: the distance of its k-th neighbour.

        Raises
        ------
        ValueError
            No component has three points, or `colors` has another length than n.
        """
        lists = self._lists
        values = lists.found.distances[:, -1] if colors is None else np.asarray(colors)
        if values.shape != (lists.n,):
            raise ValueError(f"colors of shape {values.shape}: expected a number for each of the {lists.n} points")
        found = spectral_map(lists, most=most, seed=seed)
        if found is None:
            raise ValueError("no component of the graph has three points: there is nothing to draw")
        ax = _axes(ax)
        drawn = ax.scatter(found.positions[:, 0], found.positions[:, 1], c=values[found.points], s=4, cmap="viridis")
        label = f"{self._what()} of the k-th neighbour" if colors is None else "colors"
        ax.figure.colorbar(drawn, ax=ax, label=label)
        ax.set_xticks([])
        ax.set_yticks([])
        shown = f"{len(found.points):,} of {lists.n:,} points"
        ax.set_title(f"{lists.n:,} points" if len(found.points) == lists.n else shown)
        return ax

    def _what(self) -> str:
        similarity = self._lists.measure.descending
        return f"{self._lists.metric} {'similarity' if similarity else 'distance'}"


def _axes(ax: Axes | None) -> Any:
    if ax is not None:
        return ax
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError("plots need matplotlib: pip install 'tonari[plot]'") from error
    return pyplot.subplots()[1]


def _stairs(ax: Any, found: Histogram, label: str | None) -> None:
    ax.stairs(found.counts, found.edges, fill=True, alpha=0.6, label=label)
