"""Compute the CRC-32 of arrays by several threads, while other threads write the arrays to the disk.

zlib computes about 1.3 GB/s per thread, which is slower than writing to the system's file cache. Each array is
therefore divided into pieces, and the checksums of the pieces are combined. Let c(A) be the checksum of bytes A. Bytes
are polynomials over GF(2), and c is linear, so that

    c(A B) = c(A) x^(8 |B|) + c(B)        modulo the polynomial of CRC-32

where |B| is the number of bytes of B. As in zlib, the highest bit of a number is the coefficient of x^0.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tonari.core.process.caches import cached
from tonari.core.process.workers import Workers
from tonari.core.rows.slices import cut
from tonari.shards import tuning

_POLYNOMIAL = 0xEDB88320
_ONE, _BYTE = 1 << 31, 1 << 23  # the polynomials x^0 and x^8


def crc32_of(array: npt.NDArray[Any]) -> int:
    """Return the CRC-32 of the values of an array, in C order, on this thread."""
    return zlib.crc32(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)


def checksums_beside(arrays: Sequence[npt.NDArray[Any]], work: Callable[[int], object], threads: int) -> list[int]:
    """Return the checksum of each array, while other threads call `work(i)` for the position i of each array.

    For example, ``work(i)`` writes ``arrays[i]`` to a file. An error of `work` is raised.
    """
    data = [np.ascontiguousarray(array).reshape(-1).view(np.uint8) for array in arrays]
    pieces: list[tuple[int, slice]] = []
    for at, values in enumerate(data):
        size = max(tuning.CHECKED_AT_ONCE, -(-len(values) // threads))
        pieces += [(at, part) for part in cut(len(values), size)]

    def run(task: int) -> int:
        if task < len(data):
            work(task)
            return 0
        at, part = pieces[task - len(data)]
        return zlib.crc32(data[at][part].data)

    found, sums = [0] * len(data), Workers(threads).map(run, range(len(data) + len(pieces)))
    for (at, part), of_part in zip(pieces, sums[len(data) :], strict=True):
        found[at] = _product(found[at], _shift(part.stop - part.start)) ^ of_part
    return found


@cached(maxsize=64)
def _shift(count: int) -> int:
    """Return x^(8 count) modulo the polynomial of CRC-32."""
    power, square = _ONE, _BYTE
    while count:
        if count & 1:
            power = _product(power, square)
        square, count = _product(square, square), count >> 1
    return power


def _product(a: int, b: int) -> int:
    """Return the product of two polynomials modulo the polynomial of CRC-32.

    >>> _product(_BYTE, _ONE) == _BYTE
    True
    """
    found = 0
    for place in range(31, -1, -1):
        if a >> place & 1:
            found ^= b
        b = b >> 1 ^ (_POLYNOMIAL if b & 1 else 0)
    return found
