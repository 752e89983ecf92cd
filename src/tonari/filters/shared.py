"""A mask of points that is the same for all queries, in host memory or on a device."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from tonari import inputs
from tonari.filters import tuning


class SharedMask:
    """A mask of the points that any query may find.

    Properties are computed once, since the rules of all parts of a call share this object.

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
        """Return the positions of allowed points, for points on a device; they are on that device or in host memory.

        A large mask in host memory is copied to the device of the points, and its positions are computed there, unless
        very few entries are true.
        """
        mask = self._given
        if not isinstance(mask, np.ndarray) or len(mask) < tuning.COPIED_ENTRIES:
            return self.places
        sample = _words(mask)[:: tuning.SAMPLED_WORDS]
        if tuning.READ_WORDS * np.count_nonzero(sample) <= len(sample):
            return self.places
        from tonari.cuda.devices import to_device

        return to_device(np.ascontiguousarray(mask), device).nonzero().squeeze(1)

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
    if len(mask) >= tuning.WORDS_ENTRIES:
        words = _words(mask)
        have_true = words != 0
        if tuning.FOUND_WORDS * np.count_nonzero(have_true) <= len(words):
            some = np.flatnonzero(have_true)
            at, whole = np.flatnonzero(words[some].view(bool)), 8 * len(words)
            return np.concatenate([(some[at >> 3] << 3) + (at & 7), whole + np.flatnonzero(mask[whole:])])
    return np.flatnonzero(mask)


def _words(mask: npt.NDArray[np.bool_]) -> npt.NDArray[np.uint64]:
    """Return the entries of a mask as words of eight, without the last ones if they fill no word."""
    return np.ascontiguousarray(mask[: len(mask) // 8 * 8]).view(np.uint64)
