"""`tonari.Index`: points that are prepared once, searched many times, and may be changed between searches."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tonari import inputs
from tonari.api.index import coded
from tonari.api.index.changes import ChangingIndex
from tonari.api.index.coded import with_codes
from tonari.api.index.keeping import KeptIndex
from tonari.api.index.radius import RadiusIndex
from tonari.api.index.search import SearchIndex
from tonari.api.index.segments.part import Part
from tonari.api.index.segments.state import State
from tonari.api.sparse.answers import are_sparse, check_place, checked_metric
from tonari.core.errors import Unsupported
from tonari.core.process.floats import in_default_floats
from tonari.core.process.progress import ProgressLike
from tonari.methods.places.place import place_for
from tonari.methods.registry import by_force, check_search_method
from tonari.metrics import get_metric
from tonari.metrics.transforms.change import change_for
from tonari.sparse.rows import as_sparse_rows


class Index(SearchIndex, RadiusIndex, ChangingIndex, KeptIndex):
    """Points that are prepared once, searched many times, and may be changed between searches.

    The constructor packs the points into the layout of the kernels, or builds a tree. Results contain the ids of
    points: the initial points have their row numbers as ids, added points get the next numbers, and no id is used
    twice.

    Parameters
    ----------
    points : array of shape (n, d), sparse rows, or path
        As for :func:`search`; a path only with `codes`. The Index keeps a reference to the array, since exact distances
        are computed from the original rows: the array must not change while the Index is in use (see `copy`). Sparse
        rows are copied.
    metric, weights, VI, covariance, V, transform
        As for :func:`search`, except metrics that are functions or "precomputed". If they require transformed rows,
        such as weights or "haversine", the Index also keeps a float64 copy of the transformed points, and transforms
        the queries of each search. The attributes `weights` (for "seuclidean" 1 / V) and `transform` (for "mahalanobis"
        a root T of VI = T Tᵀ) hold them.
    method : str
        As for :func:`search`. "auto" chooses once, in the constructor, for as many queries as there are points.
    device, threads
        As for :func:`search`. On CUDA, NaN and other refused values are reported by the first search, so that the
        constructor does not wait for the device.
    memory : int or str, optional
        As for :func:`search`, for the packed points and copies of points together with one search; rows that
        :meth:`add` copies are part of the points, and do not count. On the CPU, as many points stay packed as
        fit; every search packs the others again. On CUDA, a k-d tree that does not fit on the device stays in host
        memory if it takes at most half of the free host memory.
    copy : bool
        Keep a copy of the points, which counts towards `memory`; the array may then change. Without a copy, each
        search, and each other use of the points, compares 3 to 32 rows of a writable array with their earlier values;
        for a tensor it also checks torch's version counter. This check takes less than 2 % of a search. It detects an
        array that was filled with new data, but it may miss a change of a few values of a NumPy or CuPy array.
    codes : {"auto", "int8"}
        Whether to search short codes of the rows instead of the rows. Codes rule out most points, and only the original
        rows of the remaining points are read; the rows are not copied. Answers have the same bits. "float16" and "int4"
        are reserved, and refused.

        On a GPU, "int8" has one byte for each coordinate of the contracted rows, 64 or 128 bytes per point. The
        original rows stay in host memory, which is page-locked, or in a file (`points` may be its path or a memory
        map), whose rows the CPU reads. Several devices divide the codes among them. The metric is euclidean,
        sqeuclidean, cosine or correlation. "auto", the default, keeps the rows themselves on the devices. If they do
        not fit there, the first search streams them, and the second one makes codes.

        On the CPU, "int8" supports these metrics and inner_product. `points` may then be the path of a file that
        :func:`tonari.io.read` maps, a memory map, or an array, even one that is not contiguous; the codes are made in
        one pass. "auto" makes codes for the rows of a path, but not for arrays and memory maps. A trial chooses the
        number of columns within `memory`, unless `form_dim` sets it. Before each search, the size and the modification
        time of the file are compared with their earlier values. :meth:`save` writes the codes and the path of the rows.
        Filters, :meth:`add` and :meth:`remove` are refused.
    progress : None, bool or callable(done, total)
        As for :func:`search`, for the preparation of the points.
    **overrides
        Plan fields to set in every search, as for :func:`plan`; method="auto" then means brute force. For example,
        ``Index(points, device="cuda", route="host_refine", form_dim=64)`` keeps the points in host memory and only 64
        values of each point on the device.

    Raises
    ------
    TypeError, ValueError, ImportError
        As for :func:`search`.
    RuntimeError
        The array or the file of the points has changed (see `copy` and `codes`). Every method that uses the points
        raises it.

    Warns
    -----
    UserWarning
        `memory` is too small to keep all points of a segment packed. The warning names the number of points that stay
        packed and the memory that would hold all of them; it is issued once per segment.

    Notes
    -----
    After :meth:`add` and :meth:`remove`, answers have the same bits as answers of a new Index of the remaining points
    in ascending order of id, with ids in place of row numbers; ties go to the smaller id. :attr:`points` and
    :attr:`ids` return the remaining points and their ids. If all points are removed, :meth:`search` refuses every k,
    radius searches find nothing, and :meth:`add` continues with the next ids.

    An Index that was changed consists of a few segments, and a search visits one after the other. The segments share
    `memory`. If it is too small for all of them, segments drop their packed points and pack them again when they are
    searched.

    If the points are sparse, added points must be sparse too, :attr:`points` is a ``csr_array``, and
    streams of queries, `codes` and plan fields are refused.

    An Index can be pickled and copied. ``pickle`` and ``copy.deepcopy`` copy the points and the chosen method. The copy
    packs the points again, by a plan for the machine that it is on. Points on CUDA return to the device of the same
    number. ``copy.copy`` shares the points and the packed data. Every copy returns the same bits.

    Several threads may search one Index at once. One thread packs the points for all of them; `memory` limits each
    search separately. Other threads may change the Index during a search: a search, or a stream of searches, sees the
    Index as it was when it began. Searches never wait for an update; updates wait for each other.

    Examples
    --------
    >>> import numpy as np, tonari
    >>> points = np.eye(3, dtype=np.float32)
    >>> index = tonari.Index(points, metric="inner_product")
    >>> index.search(points[:1], k=1).indices.tolist()
    [[0]]

    Change an Index and save it to a file:

    >>> index.add(2 * points[:1]).tolist()
    [3]
    >>> index.remove([0])
    >>> len(index), index.search(points[:1], k=1).indices.tolist()
    (3, [[3]])
    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     index.save(os.path.join(folder, "points.index"))
    ...     again = tonari.Index.load(os.path.join(folder, "points.index"))
    >>> again.ids.tolist(), again.add(points[:1]).tolist()
    ([1, 2, 3], [4])
    """

    @in_default_floats
    def __init__(
        self,
        points: Any,
        *,
        metric: str = "euclidean",
        weights: Any = None,
        VI: Any = None,
        covariance: Any = None,
        V: Any = None,
        transform: Any = None,
        method: str = "auto",
        device: str | Sequence[str] = "auto",
        threads: int | None = None,
        memory: int | str | None = None,
        copy: bool = False,
        codes: str = "auto",
        progress: ProgressLike = None,
        **overrides: Any,
    ) -> None:
        codes, in_file = inputs.check_codes(codes), coded.is_path(points)
        if in_file:
            points = coded.opened(points)
        dropped = "but searches of an Index carry none to its points"
        inputs.warn_of_dropped({"points": points}, "use tonari.search with differentiable=True", dropped=dropped)
        check_search_method(method)
        self._set_metric(
            metric, change_for(metric, weights=weights, VI=VI, covariance=covariance, V=V, transform=transform)
        )
        progress = inputs.check_progress(progress)
        place = place_for(device, points=points)
        has_codes = not place.devices and (codes != "auto" or in_file)
        self._device = device
        self._threads = inputs.check_threads(threads)
        self._memory = inputs.parse_memory(memory)
        self._overrides = with_codes(codes, get_metric(self._base), place, overrides) if place.devices else overrides
        self._asked = by_force(self._base) if (self._overrides or has_codes) and method == "auto" else method
        self._set_call(place)
        copy = inputs.check_flag(copy, "copy")
        self._updating = threading.Lock()  # held while an update computes the new state and sets it
        if are_sparse(points):
            self._set_sparse(points, method, codes, overrides)
            return
        if not has_codes:
            rows = self._own(points, copy=copy)
        else:
            changed = self._change is not None
            coded.refuse_unsupported(codes, self._metric, self._call, copy=copy, changed=changed)
            self._coded = coded.coded_rows(points, codes, self._call, overrides)
            rows, self._overrides, self._copied = self._coded.rows, self._coded.overrides, self._coded.beside
        self._bits = inputs.bool_columns(points) if self._metric.bits else None
        self.d = rows.shape[1]
        self._state = State([Part(self._segment(rows, progress=progress, source=points))], len(rows))

    def _set_sparse(self, points: Any, method: str, codes: str, overrides: dict[str, Any]) -> None:
        """Prepare a copy of sparse points."""
        checked_metric(self._base)
        check_place(method, self._device)
        if codes != "auto" or overrides:
            name = next(iter(overrides), "codes")
            raise Unsupported(f"{name}: not supported for sparse rows; leave it out")
        self._copied, self._overrides = 0, {}
        rows = as_sparse_rows(points, "points", sets=self._metric.bits).owned()
        if not len(rows):
            raise ValueError("points: has no rows, expected at least one")
        self.d, self._asked = rows.d, "auto"
        self._set_sparse_state(rows, np.arange(len(rows)), len(rows))

    def __len__(self) -> int:
        return self._state.n

    @property
    def n(self) -> int:
        """The number of points."""
        return self._state.n

    @property
    def points(self) -> Any:
        """The original points in ascending order of id: an array or a tensor of shape (n, d).

        A tensor is on the device of the points; bool rows of "hamming" and "jaccard" are packed into bytes. After
        :meth:`add` or :meth:`remove`, the first access copies the points into one array.
        """
        return self._state.points

    @property
    def ids(self) -> npt.NDArray[np.int64]:
        """The ids of the points, ascending: int64 of shape (n,), read-only."""
        return self._state.ids

    @property
    def next_id(self) -> int:
        """The id of the next added point.

        A mask of points (`where`) must have this number of entries, one for each id ever assigned.
        """
        return self._state.next_id

    @property
    def ids_are_rows(self) -> bool:
        """Whether the id of every point is its row number in :attr:`points`."""
        now = self._state
        return now.only is not None or not now.n or bool(now.ids[-1] == now.n - 1)

    @property
    def method(self) -> str:
        """The search method of the Index; if its segments have different methods, that of the largest segment."""
        return self._state.chosen[0]

    @property
    def devices(self) -> tuple[str, ...]:
        """The CUDA devices that hold the points (with "cuda:all", of the largest segment); empty on the CPU."""
        place = self._call.place
        if place.may_take_fewer and isinstance(self._state, State) and self._state.parts:
            return self._state.largest.call.place.devices
        return place.devices

    @property
    def memory(self) -> int | None:
        """The requested limit on the bytes that a search may use beyond the points; None without a limit."""
        return self._memory

    def __repr__(self) -> str:
        dtype, also = inputs.name_of_dtype(self._state.sample), "" if self.weights is None else ", weighted"
        if self.transform is not None:
            also = f", transform of shape {self.transform.shape}"
        if self._coded is not None:
            also = f", codes={self._coded.codes!r}"
        return f"Index(n={self.n}, d={self.d}, metric={self.metric!r}, dtype={dtype}, method={self.method!r}{also})"
