"""`tonari.Index`: points prepared once, searched many times, and changed meanwhile."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tonari import inputs
from tonari.api import index_file
from tonari.api.index_changes import ChangingIndex
from tonari.api.index_radius import RadiusIndex
from tonari.api.index_search import SearchIndex
from tonari.api.part import Part
from tonari.api.state import Kind, State
from tonari.core.compiling import not_compiled
from tonari.core.floats import in_default_floats
from tonari.core.progress import ProgressLike
from tonari.methods.registry import by_force, check_search_method
from tonari.methods.where import place_for


class Index(SearchIndex, RadiusIndex, ChangingIndex):
    """Points prepared once, searched many times, and changed meanwhile.

    Parameters are those of :func:`search`. The points are packed into a kernel's layout, or put into a tree, at
    construction; the array itself is kept too, since exact values come from the original rows. It must not change
    while the Index is in use: see `copy`. On CUDA the first search reports NaN and other refused values, so that
    making an Index does not wait for the device.

    Of "haversine" and "minkowski:p", and with weights, the changed rows (float64) are kept beside the array; queries
    are changed as they come.

    copy : bool
        Keep a copy of the points, which counts towards `memory`; the array may then change. Otherwise each search, and
        each other use of the points, compares 3 to 32 rows of an array that can be written to with what they were, and
        asks torch whether one of its operations has written to a tensor. That takes less than 2 % of a search. It finds
        an array that was filled anew, but not each change of a few values of NumPy or CuPy arrays.

    With method="auto" the choice is made once, as if as many queries as there are points were to come.

    Further keyword arguments are fields of the plan to set, as for :func:`plan`, in all searches; method="auto" is then
    brute force. ``Index(points, device="cuda", route="host_refine", form_dim=64)`` keeps points in host memory and 64
    numbers of each on the device.

    An Index can be pickled and copied. ``pickle`` and ``copy.deepcopy`` take the points and the chosen method along and
    pack anew, by the plan of that method on the machine where the copy is; on the same machine that is the same plan.
    Points on CUDA come back on the device of the same number. ``copy.copy`` shares the points and what is packed. All
    of them answer with the same bits.

    On the CPU as many points stay packed as `memory` leaves room for beside the search at hand. The others are packed
    anew by every search. On CUDA k-d trees that do not fit on a device stay in host memory if they take at most half of
    what is free there.

    Points have ids, which results name: the row numbers of the first points, then the next numbers in the order in
    which points are added, never one twice. After :meth:`add` and :meth:`remove` an answer has the bits of one by an
    Index made anew from the points that are left in ascending order of id, with ids in place of its row numbers: ties
    go to the smaller id. :attr:`points` and :attr:`ids` are these points and their ids. An Index that was changed
    consists of a few segments, which a search visits one after the other. They share `memory`: what one of them needs
    beyond what the others leave, they give up, and pack anew when they are searched. If all points are removed, no k is
    small enough for :meth:`search`, and nothing is within any radius; :meth:`add` goes on with the next ids.

    Several threads may search one Index at a time. What is packed is packed by one of them, for all; `memory` is for
    each search. Other threads may change it meanwhile: a search, or a stream of them, sees the Index as it was when it
    began. Searches never wait for an update; updates wait for each other.

    Raises
    ------
    RuntimeError
        By any use of the points after their array has changed: see `copy`.

    Warns
    -----
    UserWarning
        Once for each segment, at the first search for which not all its points stay packed: how many do, and the
        `memory` for all.

    Examples
    --------
    >>> import numpy as np, tonari
    >>> points = np.eye(3, dtype=np.float32)
    >>> index = tonari.Index(points, metric="inner_product")
    >>> index.search(points[:1], k=1).indices.tolist()
    [[0]]

    An Index changes while it is in use, and is kept in a file:

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
        method: str = "auto",
        device: str | Sequence[str] = "auto",
        threads: int | None = None,
        memory: int | str | None = None,
        copy: bool = False,
        progress: ProgressLike = None,
        **overrides: Any,
    ) -> None:
        dropped = "but searches of an Index carry none to its points"
        inputs.warn_of_dropped({"points": points}, "use tonari.search with differentiable=True", dropped=dropped)
        check_search_method(method)
        self._set_metric(metric, weights)
        progress = inputs.check_progress(progress)
        place = place_for(device, points=points)
        self._device = device
        self._threads = inputs.check_threads(threads)
        self._memory = inputs.parse_memory(memory)
        self._asked = by_force(self._base) if overrides and method == "auto" else method
        self._overrides = overrides
        self._set_call(place)
        rows = self._given_rows(points, "points")
        self.d, self._copied = rows.shape[1], 0
        if inputs.check_flag(copy, "copy") and inputs.shares_memory(rows, points):
            rows = self._copy_of(rows)
        self._state = State([Part(self._segment(rows, progress=progress, source=points))], len(rows))
        self._updating = threading.Lock()  # of the one update that replaces the state

    def __len__(self) -> int:
        return self._state.n

    @property
    def n(self) -> int:
        """The number of points."""
        return self._state.n

    @property
    def points(self) -> Any:
        """The points in ascending order of id, as they were given: a checked array of shape (n, d), or a tensor.

        A tensor is on their device; rows of bits are packed. After :meth:`add` or :meth:`remove`, the first use copies
        them together.
        """
        return self._state.points

    @property
    def ids(self) -> npt.NDArray[np.int64]:
        """The ids of the points, ascending: int64 of shape (n,), read-only."""
        return self._state.ids

    @property
    def next_id(self) -> int:
        """The id that the next point gets. So many ids were given so far: masks have an entry for each."""
        return self._state.next_id

    @property
    def ids_are_rows(self) -> bool:
        """Whether the id of every point is its row number in :attr:`points`."""
        now = self._state
        return now.only is not None or not now.n or bool(now.ids[-1] == now.n - 1)

    @property
    def method(self) -> str:
        """The method that searches the points, or most of them."""
        return self._state.chosen[0]

    @property
    def devices(self) -> tuple[str, ...]:
        """CUDA devices that are searched; none on the CPU."""
        return self._call.place.devices

    @property
    def memory(self) -> int | None:
        """Bytes beyond the points that a search may use, as asked for."""
        return self._memory

    @not_compiled
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the points, their ids, the chosen method and what was asked for to a file, in full or not at all.

        A file holds its points as one aligned block, which :meth:`load` maps; being one file, it is replaced in one
        step, which a directory is not. Checksums cover every byte. Points on CUDA are copied from the device.

        Raises
        ------
        FileNotFoundError, IsADirectoryError
            The directory of `path` does not exist, or `path` is one. An older file is then unchanged.
        """
        index_file.save(path, self.__getstate__())

    @classmethod
    @in_default_floats
    def load(
        cls,
        path: str | os.PathLike[str],
        *,
        device: str | Sequence[str] | None = None,
        threads: int | None = None,
        memory: int | str | None = None,
    ) -> Index:
        """Open an Index that :meth:`save` wrote. Its answers have the same bits.

        Points in host memory are mapped, not copied, and packed by the plan of the saved method on this machine.

        Parameters
        ----------
        path : path
            The file must not be changed in place while the Index is in use; :meth:`save` replaces it, which is safe.
        device : str or list of str, optional
            See :func:`search`. Default: what was asked for when the Index was made; points that were on CUDA come back
            to the device of the same number. If it is named, fields of the plan that were set are not set again.
        threads, memory : optional
            Default: those of the saved Index.

        Raises
        ------
        FileNotFoundError
        tonari.io.FileFormatError
            The file is damaged, of another format or of a later version.
        ValueError
            This machine has no such device; name another, such as device="cpu".
        """
        state = index_file.load(path)
        on = state.pop("_on")
        if device is not None:
            wish = inputs.parse_device(device)
            if on is not None and wish != "auto":
                on = None if wish == "cpu" else place_for(device).devices[0]
            state["_device"], state["_overrides"] = device, {}
            if state["_asked"] == "auto":
                state["_chosen"] = None
        if on is not None:
            state["_points"] = place_for(on).there(state["_points"])
        if threads is not None:
            state["_threads"] = inputs.check_threads(threads)
        if memory is not None:
            state["_memory"] = inputs.parse_memory(memory)
        made = object.__new__(cls)
        made.__setstate__(state)
        return made

    def __getstate__(self) -> dict[str, Any]:
        now, left = self._state, ("_copied", "_call", "_state", "_updating", "_change", "_base", "_metric")
        state = {name: value for name, value in self.__dict__.items() if name not in left}
        now.check_unchanged()
        points = now.points
        if inputs.kind_of(points) == "torch" and points.untyped_storage().nbytes() > points.nbytes:
            # A tensor takes along all the memory that it is a view of.
            points = points.clone(memory_format=sys.modules["torch"].contiguous_format)
        ids = None if now.only is not None else np.array(now.ids)
        return state | {"_points": points, "_ids": ids, "_next_id": now.next_id, "_chosen": now.chosen}

    def __setstate__(self, state: dict[str, Any]) -> None:
        points, ids, next_id, chosen = (state.pop(name) for name in ("_points", "_ids", "_next_id", "_chosen"))
        self.__dict__.update(state)
        self._copied = 0
        self._set_metric(self.metric, self.weights)
        self._set_call(place_for(self._device, points=points))
        if len(points):
            self._state = State([Part(self._segment(points, chosen=chosen), ids)], next_id)
        else:
            self._state = State([], next_id, Kind.like(points, chosen))
        self._updating = threading.Lock()

    def __copy__(self) -> Index:
        made = object.__new__(type(self))
        made.__dict__.update(self.__dict__, _state=self._state.copied(), _updating=threading.Lock())
        return made

    def __repr__(self) -> str:
        dtype, weighted = inputs.name_of_dtype(self._state.sample), "" if self.weights is None else ", weighted"
        return f"Index(n={self.n}, d={self.d}, metric={self.metric!r}, dtype={dtype}, method={self.method!r}{weighted})"
