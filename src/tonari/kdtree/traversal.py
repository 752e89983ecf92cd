"""Which traversal a search takes: the walk, or the buffered one of gieseke2014 and the size of its buffers."""

from __future__ import annotations

from typing import Any

TRAVERSALS = ("walk", "buffered")
DEFAULT = "walk"  # on both devices and for all data: a choice by rows that were measured belongs in `choose`

_PAPER_LEAVES_TIMES_BUFFER = 22  # its B is 2**(22 - height), for 10**7 queries (section 4.2)
_LEAST_BUFFER = 64  # of high trees: fewer would fill no tile
# A round takes five buffers of queries. On CUDA fewer than a million would not fill the device for the time that a
# launch takes.
_LEAST_BUFFER_ON_CUDA = 1 << 18


def choose(overrides: dict[str, Any]) -> str:
    """Return the traversal.

    Raises
    ------
    ValueError
        Another word, or a buffer for the walk.

    Examples
    --------
    >>> choose({}), choose({"traversal": "buffered"})
    ('walk', 'buffered')
    """
    asked = overrides.get("traversal", DEFAULT)
    if asked not in TRAVERSALS:
        raise ValueError(f"traversal={asked!r}: expected {' or '.join(map(repr, TRAVERSALS))}")
    if asked == "walk" and "buffer" in overrides:
        raise ValueError("buffer: the walk has no buffers; set traversal='buffered' with it")
    return str(asked)


def buffer_of(traversal: str, overrides: dict[str, Any], height: int, *, on_cuda: bool) -> int:
    """Return the queries per leaf buffer, 0 for the walk.

    >>> buffer_of("buffered", {}, 8, on_cuda=False), buffer_of("walk", {}, 8, on_cuda=False)
    (16384, 0)
    """
    if traversal == "walk":
        return 0
    least = _LEAST_BUFFER_ON_CUDA if on_cuda else _LEAST_BUFFER
    usual = max(least, 1 << max(0, _PAPER_LEAVES_TIMES_BUFFER - height))
    return int(overrides.get("buffer", usual))
