"""Choose the traversal of a plan: the walk, or the buffered traversal of gieseke2014 with a size of its buffers."""

from __future__ import annotations

from typing import Any

from tonari.core.errors import Unsupported
from tonari.metrics import get_metric

TRAVERSALS = ("walk", "buffered")
DEFAULT = "walk"  # for all data, on the CPU and on CUDA

_PAPER_LEAVES_TIMES_BUFFER = 22  # log2 of (leaves x buffer size B) in the paper, for 10**7 queries (section 4.2)
_LEAST_BUFFER = 64  # minimum number of queries per buffer, also in high trees, so that tiles are full

# A round processes the queries of five buffers. On CUDA, fewer than a million queries take less time than the launch of
# their round.
_LEAST_BUFFER_ON_CUDA = 1 << 18


def choose(overrides: dict[str, Any]) -> str:
    """Return the traversal that the caller requests, by default "walk".

    Raises
    ------
    ValueError
        The traversal is unknown, or `buffer` is set for the walk.

    Examples
    --------
    >>> choose({}), choose({"traversal": "buffered"})
    ('walk', 'buffered')
    """
    traversal = overrides.get("traversal", DEFAULT)
    if traversal not in TRAVERSALS:
        raise ValueError(f"traversal={traversal!r}: expected {' or '.join(map(repr, TRAVERSALS))}")
    if traversal == "walk" and "buffer" in overrides:
        raise ValueError("buffer: the walk has no buffers; set traversal='buffered' with it")
    return str(traversal)


def check_supported(traversal: str, metric: str, held: str, *, on_cuda: bool) -> None:
    """Check that there is a kernel for this traversal and metric in a tree of dtype `held`.

    Raises
    ------
    Unsupported
        On the CPU, the buffered traversal supports only the paper's case: float32 and squares of differences.

    Examples
    --------
    >>> check_supported("buffered", "euclidean", "float32", on_cuda=False)
    >>> check_supported("buffered", "l1", "float32", on_cuda=True)
    >>> check_supported("buffered", "l1", "float32", on_cuda=False)
    Traceback (most recent call last):
    ...
    tonari.core.errors.Unsupported: traversal='buffered' on the CPU: got metric='l1' and a tree of float32, ...
    """
    if traversal == "walk" or on_cuda or (get_metric(metric).squares and held == "float32"):
        return
    raise Unsupported(
        f"traversal='buffered' on the CPU: got metric={metric!r} and a tree of {held}, expected euclidean or "
        "sqeuclidean and float32; leave traversal out, which takes the walk"
    )


def buffer_of(traversal: str, overrides: dict[str, Any], height: int, *, on_cuda: bool) -> int:
    """Return the number of queries per leaf buffer; 0 for the walk.

    >>> buffer_of("buffered", {}, 8, on_cuda=False), buffer_of("walk", {}, 8, on_cuda=False)
    (16384, 0)
    """
    if traversal == "walk":
        return 0
    least = _LEAST_BUFFER_ON_CUDA if on_cuda else _LEAST_BUFFER
    usual = max(least, 1 << max(0, _PAPER_LEAVES_TIMES_BUFFER - height))
    return int(overrides.get("buffer", usual))
