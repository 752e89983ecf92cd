"""The methods of `tonari.Index` for files, pickles and copies."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tonari import inputs
from tonari.api.index import coded
from tonari.api.index.base import IndexBase
from tonari.api.index.files import dense as index_file
from tonari.api.index.segments.part import Part
from tonari.api.index.segments.sparse_state import SparseState
from tonari.api.index.segments.state import Kind, State
from tonari.api.sparse.answers import check_place
from tonari.core.process.compiling import not_compiled
from tonari.core.process.floats import in_default_floats
from tonari.methods.places.place import place_for
from tonari.metrics.transforms.change import change_of
from tonari.sparse.rows import SparseRows

if TYPE_CHECKING:
    from typing_extensions import Self


class KeptIndex(IndexBase):
    """The files, pickles and copies of :class:`tonari.Index`."""

    _updating: threading.Lock

    @not_compiled
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the points, their ids, the chosen method and the arguments of the Index to a file, atomically.

        The file holds the points as one aligned block, which :meth:`load` maps. Checksums cover every byte. Points on
        CUDA are copied from the device. An Index with `codes` writes its codes, the absolute path of the rows and their
        checksums, not the rows.

        Parameters
        ----------
        path : path
            The file. An older file of this name is replaced in one step, when the new one is complete.

        Raises
        ------
        ValueError
            The Index has codes of rows that are not in a file.
        FileNotFoundError, IsADirectoryError
            The directory of `path` does not exist, or `path` is itself a directory. An older file is then unchanged.
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
    ) -> Self:
        """Open an Index that :meth:`save` wrote; it returns the same bits as the saved Index.

        Points in host memory are mapped, not copied, and packed for the saved method by a plan for this machine. Codes
        are read from the file, and rows are compared with some of their checksums, or with all of them if their file
        has another modification time.

        Parameters
        ----------
        path : path
            The file. It must not be changed in place while the Index is in use; replacing it by :meth:`save` is safe.
        device : str or list of str, optional
            See :func:`search`. Default: the `device` of the saved Index; points from CUDA return to the device of the
            same number. If `device` is passed, the plan fields that the saved Index sets are dropped.
        threads, memory : optional
            See :func:`search`. Default: the values of the saved Index.

        Raises
        ------
        FileNotFoundError
        tonari.io.FileFormatError
            The file is damaged, of another format or of a later version.
        ValueError
            This machine lacks the device of the saved Index; pass another one, such as device="cpu".
        RuntimeError
            The rows of saved codes have changed.
        """
        made = object.__new__(cls)
        made.__setstate__(index_file.state_for(index_file.load(path), device, threads, memory))
        return made

    def __getstate__(self) -> dict[str, Any]:
        now, left = self._state, ("_copied", "_call", "_state", "_updating", "_change", "_base", "_metric", "_coded")
        state = {name: value for name, value in self.__dict__.items() if name not in left}
        now.check_unchanged()
        if self._coded is not None:
            kept = {"_points": None, "_ids": None, "_next_id": now.next_id, "_chosen": now.chosen}
            return state | kept | {"_coded": self._coded.state()}
        points: Any = now.rows if isinstance(now, SparseState) else now.points
        if inputs.kind_of(points) == "torch" and points.untyped_storage().nbytes() > points.nbytes:
            # The pickle of a tensor that is a view would contain the memory of the whole base tensor.
            points = points.clone(memory_format=sys.modules["torch"].contiguous_format)
        ids = None if now.only is not None else np.array(now.ids)
        return state | {"_points": points, "_ids": ids, "_next_id": now.next_id, "_chosen": now.chosen}

    def __setstate__(self, state: dict[str, Any]) -> None:
        points, ids, next_id, chosen = (state.pop(name) for name in ("_points", "_ids", "_next_id", "_chosen"))
        codes = state.pop("_coded", None)
        self.__dict__.update(state)
        self._copied = 0
        self._set_metric(self.metric, change_of(self.metric, self.weights, self.transform))
        if codes is not None:
            self._coded = coded.CodedRows.of_state(codes, self._base)
            points, self._overrides = self._coded.rows, self._coded.overrides
            self._copied = self._coded.beside
        self._set_call(place_for(self._device, points=points))
        if isinstance(points, SparseRows):
            check_place("auto", self._device)
            self._set_sparse_state(points, ids, next_id)
        elif len(points):
            self._state = State([Part(self._segment(points, chosen=chosen), ids)], next_id)
        else:
            self._state = State([], next_id, Kind.like(points, chosen))
        self._updating = threading.Lock()

    def __copy__(self) -> Self:
        made = object.__new__(type(self))
        made.__dict__.update(self.__dict__, _state=self._state.copied(), _updating=threading.Lock())
        return made
