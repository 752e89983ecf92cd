"""The device memory of a search among rows of bits."""

from __future__ import annotations

from dataclasses import dataclass

from tonari.bits import tuning
from tonari.core.results.neighbors import index_dtype
from tonari.core.units import MIB
from tonari.select.cuda.ordering.order import ENTRY_BYTES, MERGE_BYTES

STEP = 128  # columns per step of a product, which divides the number of columns of an unpacked row
TILE, POINT_TILE = 128, 256  # queries and points in a tile of the product
SMALL_CHANGE = 64 * MIB
_PAIR = 5  # bytes of a pair: its value, and a flag for values within a limit
_KEPT = 16  # bytes of a selected entry: a value and its position


def unpacked_width(d: int) -> int:
    """Return the number of columns of an unpacked row of d bytes: a column for each bit, padded to whole steps.

    >>> unpacked_width(128), unpacked_width(3)
    (1024, 128)
    """
    return -(-8 * d // STEP) * STEP


def whole_tiles(points: int) -> int:
    """Round a number of points down to whole tiles, unless it is less than two tiles.

    >>> whole_tiles(1000), whole_tiles(300)
    (768, 300)
    """
    return points // POINT_TILE * POINT_TILE if points >= 2 * POINT_TILE else points


@dataclass(frozen=True)
class BitSizes:
    """The sizes of the block of queries and the slab of points whose values are in a device's memory at once.

    Attributes
    ----------
    block, slab : int
        The number of queries and of points.
    streamed : bool
        Whether every search copies points from host memory slab by slab. Otherwise they stay on the device.
    """

    block: int
    slab: int
    streamed: bool


@dataclass(frozen=True)
class BitNeeds:
    """The sizes that determine the memory of a search, in addition to those in :class:`BitSizes`.

    Attributes
    ----------
    n, m, d, k : int
        Points, queries (of one device), bytes of a row, neighbours.
    points_come, queries_come : bool
        Whether the points, and the queries, have to be copied to the device.
    results : int
        The number of rows of the whole result if it is collected on the device; 0 if it is copied to host memory.
    """

    n: int
    m: int
    d: int
    k: int
    points_come: bool
    queries_come: bool
    results: int

    def wish(self) -> BitSizes:
        """Return the preferred sizes, which are used if memory allows them."""
        width = unpacked_width(self.d)
        most = max(1, min(tuning.BLOCK_ON_CUDA, tuning.UNPACKED_BYTES // width))
        even = -(-self.m // -(-self.m // most))
        block = min(self.m, most, -(-even // TILE) * TILE)
        slab = whole_tiles(max(1, min(tuning.PAIRS // block, tuning.UNPACKED_BYTES // width)))
        return BitSizes(block, min(self.n, slab), False)

    def packed_bytes(self, sizes: BitSizes) -> int:
        """Return the bytes of the points that are copied to the device and stay there."""
        return self.n * self.d if self.points_come and not sizes.streamed else 0

    def copied_bytes(self, sizes: BitSizes) -> int:
        """Return the bytes of rows copied during a search: a block of queries, and two slabs of points if streamed."""
        slabs = 2 * sizes.slab if sizes.streamed else 0
        return self.d * (slabs + (sizes.block if self.queries_come else 0))

    def working_bytes(self, sizes: BitSizes) -> int:
        """Return the bytes of unpacked rows, values of pairs, selections from them, and merged neighbour lists."""
        block, slab = sizes.block, sizes.slab
        unpacked = (block + slab) * (unpacked_width(self.d) + 4)
        found = block * min(self.k, slab)
        selecting = 8 * found + min(tuning.SELECTING_BYTES, block * _KEPT * min(slab, 4 * self.k + 1024))
        merging = min(MERGE_BYTES, 2 * self.k * block * ENTRY_BYTES) + 2 * self._lists(block) if slab < self.n else 0
        return SMALL_CHANGE + unpacked + _PAIR * block * slab + selecting + merging

    def output_bytes(self, sizes: BitSizes) -> int:
        """Return the bytes of a block's results, and of all results if they are collected on the device."""
        return self._lists(sizes.block + self.results)

    def total_bytes(self, sizes: BitSizes) -> int:
        """Return the bytes that a search takes on a device beyond the input."""
        resident = self.packed_bytes(sizes) + self.copied_bytes(sizes)
        return resident + self.working_bytes(sizes) + self.output_bytes(sizes)

    def _lists(self, rows: int) -> int:
        return rows * self.k * (4 + index_dtype(self.n).itemsize)
