"""A mask of points that is the same for all queries, in host memory or on a device."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from tonari import inputs
from tonari.core import _native
from tonari.filters import tuning


class SharedMask:
    """A mask of the points that all queries may find.

    Its properties are computed once for a call, since the rules of all searches of the call share this object.

    Parameters
    ----------
    given : bool array of shape (n,), or tensor on a device
        The mask. On a device, the positions of allowed points are computed there, and only `host` copies the mask to
        host memory.
    """

    def __init__(self, given: Any) -> None:
        self._given = given

    @cached_property
    def host(self) -> npt.NDArray[np.bool_]:
        """The mask in host memory."""
        return np.asarray(inputs.to_host(self._given))

    @cached_property
    def places(self) -> Any:
        """The positions of allowed points, ascending, on the device of the mask."""
        if isinstance(self._given, np.ndarray):
            return true_places(self._given)
        return self._given.nonzero().squeeze(1)

    def places_for(self, device: Any) -> Any:
        """Return the positions of allowed points for a search of points on `device`, there or in host memory.

        A large mask in host memory is copied to the device, and the positions are computed there, unless few entries
        are true.
        """
        mask = self._given
        if not isinstance(mask, np.ndarray) or len(mask) < tuning.COPIED_ENTRIES:
            return self.places
        few = _few_places(mask)
        if few is not None:
            return few
        from tonari.cuda.devices import to_device

        return to_device(np.ascontiguousarray(mask), device).nonzero().squeeze(1)

    @cached_property
    def host_places(self) -> npt.NDArray[np.int64]:
        """The positions of allowed points, ascending, in host memory."""
        return np.asarray(inputs.to_host(self.places))


def true_places(mask: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    """Return the positions of the true entries of a mask, ascending.

    >>> true_places(np.array([True, False, True])).tolist()
    [0, 2]
    """
    few = _few_places(mask)
    return np.flatnonzero(mask) if few is None else few


def _few_places(mask: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64] | None:
    """Return the positions of the true entries if they are few, faster than NumPy does; None if they are many."""
    room = np.empty(len(mask) // tuning.FEW_ENTRIES, np.int64)
    found = _native.true_entries(np.ascontiguousarray(mask).view(np.uint8), room)
    return room[:found].copy() if found <= len(room) else None
