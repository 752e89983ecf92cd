"""The methods of KNNGraph that add, remove or replace points, and return the graph of all points after the change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from tonari import inputs
from tonari.core.process.floats import in_default_floats
from tonari.graph.building.changed_rows import on_compared_rows
from tonari.graph.building.changing import remove_points, replace_points
from tonari.graph.building.merging import add_points
from tonari.methods.options import Options, PlaceOptions, shares

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from tonari.graph.lists import Lists

Graph = TypeVar("Graph", bound="Changing")


class Changing:
    """The methods of KNNGraph that add, remove and replace points."""

    if TYPE_CHECKING:
        metric: str

        @property
        def lists(self) -> Lists:
            """The graph's neighbour lists and properties, as a plain internal record."""

        @classmethod
        def of_lists(cls: type[Graph], lists: Lists) -> Graph:
            """Make a graph from an internal record, whose lists are not checked."""

    @in_default_floats
    @inputs.without_gradients("use tonari.knn_graph of all points with differentiable=True")
    @shares(PlaceOptions)
    def add(
        self: Graph,
        points: Any,
        new_points: Any,
        *,
        recall: float | None = None,
        seed: int = 0,
        update: str | None = None,
        **shared: Unpack[PlaceOptions],
    ) -> Graph:
        """Return the graph of this graph's points followed by new points.

        An exact graph stays exact: every point is compared with all new points, and every new point with all points.
        For an approximate graph, or with `recall`, many new points are merged by NN-Descent; a few are compared with
        all points. The result and a copy of all points are in memory. A graph in a directory that does not fit into
        memory is refused; build the graph of the old files followed by the new ones with :func:`tonari.build_graph`
        instead.

        Parameters
        ----------
        points : array of shape (n, d)
            The points of this graph.
        new_points : array of shape (m, d)
            The points to add, of the same dtype.
        recall : float, optional
            As for :func:`tonari.merge`. Default: an exact graph stays exact; 0.99 for other graphs. An exact graph may
            become approximate if `recall` is given.
        seed, device, threads, memory, progress
            As for :func:`tonari.merge`.
        update : "pull" or "gnnd", optional
            On CUDA: how rounds of NN-Descent update the lists, both for the graph of the new points and for its merge
            with this graph; see :func:`tonari.merge`. Refused if an exact graph stays exact.

        Returns
        -------
        KNNGraph of n + m points
            The new points are numbered from n.

        Raises
        ------
        TypeError, ValueError
            As for :func:`tonari.merge`.

        Examples
        --------
        >>> import numpy as np, tonari
        >>> line = np.array([[0.0], [1.0], [3.0]], dtype=np.float32)
        >>> tonari.knn_graph(line[:2], k=1).add(line[:2], line[2:]).indices.ravel().tolist()
        [1, 0, 1]
        """
        lists = on_compared_rows(
            {"points": self.lists},
            {"points": points, "new_points": new_points},
            lambda graphs, rows, call: add_points(
                graphs[0], rows[0], rows[1], call, recall=recall, seed=seed, update=update
            ),
            Options(**shared),
        )
        return self.of_lists(lists)

    @in_default_floats
    @inputs.without_gradients("use tonari.knn_graph of the remaining points with differentiable=True")
    @shares(PlaceOptions)
    def remove(
        self: Graph,
        points: Any,
        ids: Any,
        *,
        recall: float | None = None,
        seed: int = 0,
        **shared: Unpack[PlaceOptions],
    ) -> Graph:
        """Return the graph of the remaining points, ``numpy.delete(points, ids, axis=0)``.

        An exact graph stays exact and equals a newly built one bit for bit: neighbours are searched again only for
        points whose lists contained a removed point. An approximate graph is refined by NN-Descent, starting from its
        lists, and its `report` has the recall.

        Parameters
        ----------
        points : array of shape (n, d)
            The points of this graph.
        ids : int, or integers of shape (any,)
            Row numbers of the points to remove, without repeats. The remaining points keep their order and are numbered
            from 0, as the rows of :attr:`tonari.Index.points` are after :meth:`tonari.Index.remove`: row i of the
            result is row ``numpy.delete(numpy.arange(n), ids)[i]`` of this graph.
        recall : float, optional
            For an approximate graph, as for :func:`tonari.knn_graph`. Default: 0.99. Refused for an exact graph.
        seed : int
            Seed of the random choices of NN-Descent; an exact graph needs none.
        device, threads, memory, progress
            As for :func:`tonari.knn_graph`. `memory` limits the searches; copies of the lists and of the remaining
            points take additional memory.

        Returns
        -------
        KNNGraph of the remaining points
            The arrays belong to the library of the points and are on their device.

        Raises
        ------
        TypeError
            An id is not a whole number.
        ValueError
            An id is not a row number, or occurs twice; too few points remain for lists of k neighbours; the graph was
            built from other points, or with filters; or it is exact and has lists shorter than k, as after
            :meth:`subset`.

        Examples
        --------
        >>> import numpy as np, tonari
        >>> line = np.array([[0.0], [1.0], [3.0], [7.0]], dtype=np.float32)
        >>> graph = tonari.knn_graph(line, k=1)
        >>> graph.remove(line, [1]).indices.ravel().tolist()  # of the points 0, 3 and 7
        [1, 0, 1]
        """
        lists = on_compared_rows(
            {"points": self.lists},
            {"points": points},
            lambda graphs, rows, call: remove_points(graphs[0], rows[0], ids, call, recall=recall, seed=seed),
            Options(**shared),
        )
        return self.of_lists(lists)

    @in_default_floats
    @inputs.without_gradients("use tonari.knn_graph of the changed points with differentiable=True")
    @shares(PlaceOptions)
    def replace(
        self: Graph,
        points: Any,
        ids: Any,
        rows: Any,
        *,
        recall: float | None = None,
        seed: int = 0,
        **shared: Unpack[PlaceOptions],
    ) -> Graph:
        """Return the graph of the points after ``points[ids] = rows``.

        An exact graph stays exact and equals a newly built one bit for bit. All points are compared with the new rows.
        Only two kinds of points are then compared with all points: the replaced points, and points whose lists lost a
        replaced point and gained no new row that is near enough. An approximate graph is refined by NN-Descent, which
        starts from its lists, and its `report` has the recall.

        Parameters
        ----------
        points : array of shape (n, d)
            The points of this graph, before the change. They are not changed.
        ids : int, or integers of shape (m,)
            Row numbers of the points to replace, without repeats.
        rows : array of shape (m, d)
            Their new rows, of the same dtype.
        recall, seed, device, threads, memory, progress
            As for :meth:`remove`.

        Returns
        -------
        KNNGraph of n points
            Points keep their row numbers.

        Raises
        ------
        TypeError, ValueError
            As for :meth:`remove`; or the new rows differ from the points in dtype, columns or device.

        Examples
        --------
        >>> import numpy as np, tonari
        >>> line = np.array([[0.0], [1.0], [3.0], [7.0]], dtype=np.float32)
        >>> tonari.knn_graph(line, k=1).replace(line, [1], np.array([[8.0]], np.float32)).indices.ravel().tolist()
        [2, 3, 0, 1]
        """
        lists = on_compared_rows(
            {"points": self.lists},
            {"points": points, "rows": rows},
            lambda graphs, rows, call: replace_points(graphs[0], rows[0], ids, rows[1], call, recall=recall, seed=seed),
            Options(**shared),
        )
        return self.of_lists(lists)
