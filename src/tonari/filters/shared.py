"""A mask of points that is the same for all queries, in host memory or on a device."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from tonari import inputs
from tonari.filters import tuning


class SharedMask:
    """The points that any query may find. Results are computed once, since the rules of all parts of a call share them.

    Parameters
    ----------
    given : bool array of shape (n,), or tensor on a device
        The mask. On a device, the positions of allowed points are computed there, and only `host` copies the mask.
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
        """Return the positions for points on a device; they are on any device, or in host memory.

        The bits of a large mask in host memory are copied to the device and read there, unless very few entries are
        true.
        """
        if not isinstance(self._given, np.ndarray) or len(self._given) < tuning.COPIED_ENTRIES:
            return self.places
        places = _few_places(self._given, tuning.READ_WORDS)
        if places is not None:
            return places
        from tonari.cuda.devices import to_device

        # One copy for the bits of the mask and the eight bits of a byte.
        packed, bits = np.packbits(self._given, bitorder="little"), 1 << np.arange(8, dtype=np.uint8)
        both = to_device(np.concatenate([packed, bits]), device)
        return (both[:-8, None] & both[-8:]).view(-1).nonzero().squeeze(1)

    @cached_property
    def host_places(self) -> npt.NDArray[np.int64]:
        """The positions in host memory."""
        return np.asarray(inputs.to_host(self.places))


def true_places(mask: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    """Return the positions of the true entries of a mask, ascending.

    In a large mask with few true entries, words of eight entries are tested first, which takes less time than NumPy's
    search for single entries.

    >>> true_places(np.array([True, False, True])).tolist()
    [0, 2]
    """
    places = _few_places(mask, tuning.FOUND_WORDS) if len(mask) >= tuning.WORDS_ENTRIES else None
    return np.flatnonzero(mask) if places is None else places


def _few_places(mask: npt.NDArray[np.bool_], share: int) -> npt.NDArray[np.int64] | None:
    """Return the positions if at most one of `share` words of eight entries has a true one, else None."""
    whole = len(mask) // 8 * 8
    words = np.ascontiguousarray(mask[:whole]).view(np.uint64)
    have_true = words != 0
    if share * np.count_nonzero(have_true) > len(words):
        return None
    some = np.flatnonzero(have_true)
    at = np.flatnonzero(words[some].view(bool))
    return np.concatenate([(some[at >> 3] << 3) + (at & 7), whole + np.flatnonzero(mask[whole:])])
