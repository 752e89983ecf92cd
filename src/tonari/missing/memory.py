"""The memory of a search among rows with missing values, as native/missing allocates it."""

from __future__ import annotations

GROUP = 64  # points in a group: kMissingGroup of native/missing/points.hpp
_LANES, _WORD = 16, 64  # rows are padded to a multiple of this; columns of a word of bits
_QUERY = 192  # bytes for a query in a task, without its arrays


def packed_bytes(n: int, d: int) -> int:
    """Return the bytes of packed points: a float32 for each number, a bit for each column, and the columns' means."""
    groups = -(-n // GROUP)
    return groups * (GROUP * (4 * d + 8 * _words(d)) + 4) + 8 * d


def preparing_bytes(n: int, d: int) -> int:
    """Return the bytes of temporary arrays while points are packed."""
    return 4 * n + 20 * d


def block_bytes(queries: int, d: int, k: int) -> int:
    """Return the bytes of a task: its queries, and the nearest points of each so far."""
    return queries * (8 * _LANES * -(-d // _LANES) + 8 * d + 8 * _words(d) + 16 * k + _QUERY) + 4 * d


def _words(d: int) -> int:
    return -(-d // _WORD)
