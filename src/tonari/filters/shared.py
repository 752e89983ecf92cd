"""A mask of points that is the same for all queries, where the caller has it: in host memory or on a device."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from tonari import inputs
from tonari.filters import tuning


class SharedMask:
    """Points that any query may find. What is asked is computed once, as the rules of all parts of a call share it.

    Parameters
    ----------
    given : bool array of shape (n,), or tensor on a device
        On a device the places of allowed points are found there, and the mask is not copied unless `host` is asked for.
    """

    def __init__(self, given: Any) -> None:
        self._given = given

    @cached_property
    def host(self) -> npt.NDArray[np.bool_]:
        """The mask in host memory."""
        return np.asarray(inputs.to_host(self._given))

    @cached_property
    def places(self) -> Any:
        """The places of allowed points, ascending, where the mask is."""
        if isinstance(self._given, np.ndarray):
            return true_places(self._given)
        return self._given.nonzero().squeeze(1)

    @cached_property
    def host_places(self) -> npt.NDArray[np.int64]:
        """The places in host memory."""
        return np.asarray(inputs.to_host(self.places))


def true_places(mask: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    """Return the places of the true entries of a mask, ascending.

    In a large mask that is true in few places, bytes of eight entries are looked at first: twice as fast as NumPy.

    >>> true_places(np.array([True, False, True])).tolist()
    [0, 2]
    """
    if len(mask) >= tuning.PACKED_ENTRIES:
        packed = np.packbits(mask, bitorder="little")
        some = np.flatnonzero(packed != 0)
        if tuning.PACKED_BYTES * len(some) <= len(packed):
            at = np.flatnonzero(np.unpackbits(packed[some], bitorder="little").view(bool))
            places: npt.NDArray[np.int64] = (some[at >> 3] << 3) + (at & 7)
            return places
    return np.flatnonzero(mask)
