"""Choose the width, the number of groups refined per row: in a first attempt, after a fit to some rows, in retries."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from tonari.exact.cuda import tuning

NEAR_BYTES = 32  # scratch bytes per refined group or near point; the search for them needs few more bytes


def usual_width(wanted: int) -> int:
    """Return the number of groups that a first attempt refines per row, if `wanted` neighbours are requested.

    >>> usual_width(10), usual_width(100)
    (16, 112)
    """
    return wanted + max(6, wanted // 8)


def wider(d: int) -> int:
    """Return the factor by which a retry multiplies the number of refined groups, for rows of d columns.

    >>> wider(3), wider(5), wider(16), wider(768)
    (16, 12, 4, 4)
    """
    return tuning.WIDER * min(4, max(1, tuning.SHORT_COLUMNS // d))


class Fitted(NamedTuple):
    """The number of groups to refine per row, fitted to the first rows of a search.

    `unproved` is the share of the first rows whose answers are not certified as exact if that many groups are refined.
    """

    width: int
    unproved: float


def fitted_width(
    least: int, unproved_at: Callable[[int], float], again: float | None = None, *, widest: int | None = None
) -> Fitted:
    """Return the fastest width: the number of groups refined per row.

    A larger width takes longer, but leaves fewer rows unproved (not certified as exact), which are searched again.

    The number of groups that bounds cannot separate depends on the data. Widths are doubled as long as that may save
    time.

    Parameters
    ----------
    least : int
    unproved_at : callable(int)
        Searches the first rows with a width, and returns the share of unproved rows.
    again : float
        The time to search a row again, in units of the time for `least` groups. Default: SEARCHED_AGAIN.
    widest : int, optional
        The largest width, as a multiple of `least`. Default: WIDEST.

    Examples
    --------
    >>> fitted_width(16, {16: 0.3, 32: 0.02, 64: 0.0}.get)
    Fitted(width=32, unproved=0.02)
    """
    again = tuning.SEARCHED_AGAIN if again is None else again
    tried: list[tuple[float, Fitted]] = []
    for width in widths_from(least, least, widest):
        if tried and width / least >= min(tried)[0]:
            break
        unproved = unproved_at(width)
        tried.append((width / least + again * unproved, Fitted(width, unproved)))
    return min(tried)[1]


def widths_from(width: int, least: int, widest: int | None = None) -> list[int]:
    """Return the widths (groups refined per row) to try, in ascending order, beginning with `width`.

    >>> widths_from(34, 17)
    [34, 68, 136]
    """
    most = tuning.WIDEST if widest is None else widest
    return [width << times for times in range(most.bit_length()) if width << times <= most * least]
