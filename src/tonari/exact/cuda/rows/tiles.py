"""Tiles: the widths of packed rows, the division of rows and points among programs, and lists of groups."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from tonari.core.process.caches import cached
from tonari.cuda.compiling.rehearsal import rehearsed_card
from tonari.exact.cuda import tuning
from tonari.exact.cuda.rows.groups import LISTED, POINT_TILE, group_count

# Packed queries of up to this many bytes stay in shared memory. Wider ones stay there only on devices that have a
# kernel for them (screens/wide_rows.py); otherwise both operands are streamed. The bytes of a row, not its dtype,
# determine kernels and tiles.
RESIDENT_BYTES = 256
STEP_BYTES = 128  # bytes of wide rows per load


@dataclass(frozen=True)
class Lists:
    """For each row, the groups of LISTED points whose certified minimum is at or below the threshold.

    Attributes
    ----------
    values : float32 (rows, segments * room)
        The certified minima; +inf beyond the last entry.
    entries : int32 (rows, segments * room)
        16 times the group number, plus one bit for each part of LEAST_GROUP points that may contain a point at or below
        the threshold; undefined beyond the last entry.
    counts : int32 (rows, segments)
        Number of groups found for each segment; if it exceeds `room`, entries are missing.
    """

    values: Any
    entries: Any
    counts: Any

    @property
    def room(self) -> int:
        """The number of slots in a segment of a list."""
        return int(self.values.shape[1] // self.counts.shape[1])

    @property
    def output(self) -> dict[str, Any]:
        """The lists and their sizes, as keyword arguments of the kernels of screens."""
        return {
            "values_ptr": self.values,
            "entries_ptr": self.entries,
            "counts_ptr": self.counts,
            "segments": self.counts.shape[1],
            "room": self.room,
        }


def lists_for(m: int, split: Split, room: int, device: Any) -> Lists:
    """Return empty lists for m rows, with the given number of slots in each segment."""
    import torch

    segments = 4 * split.parts
    return Lists(
        torch.full((m, segments * room), float("inf"), dtype=torch.float32, device=device),
        torch.empty((m, segments * room), dtype=torch.int32, device=device),
        torch.empty((m, segments), dtype=torch.int32, device=device),
    )


def room_of(split: Split, n: int, capacity: int) -> int:
    """Return the number of slots in a segment, for lists that are expected to have at most `capacity` entries."""
    if capacity >= group_count(n, LISTED):
        return split.each * split.columns // POINT_TILE  # a tile adds at most one entry to a segment
    share = capacity / (4 * split.parts)
    return math.ceil(share + tuning.UNEVEN * math.sqrt(share) + tuning.UNEVEN)


def width_of(d: int, size: int = 2) -> int:
    """Return the columns of a packed row of d values of `size` bytes, a multiple of the kernels' steps.

    >>> [width_of(d) for d in (1, 90, 100, 300, 960)]
    [16, 96, 128, 320, 960]
    >>> [width_of(d, 1) for d in (1, 90, 100, 300, 960)]
    [32, 128, 128, 384, 1024]
    """
    for each in (32, 64, 128, 192, RESIDENT_BYTES):
        if d * size <= each:
            return each // size
    return -(-d * size // STEP_BYTES) * STEP_BYTES // size


def row_bytes(packed: Any) -> int:
    """Return the size in bytes of a row of packed values."""
    return int(packed.shape[1] * packed.element_size())


def step_of(packed: Any) -> int:
    """Return the number of columns of wide packed rows per load."""
    return int(STEP_BYTES // packed.element_size())


@dataclass(frozen=True)
class Split:
    """A division of work among programs: `parts` programs for each of `row_tiles` tiles of `rows` queries.

    Each program compares its tile with `each` of the `blocks` blocks of `columns` points.
    """

    rows: int
    columns: int
    row_tiles: int
    blocks: int
    each: int
    parts: int


def fewest_parts(rows: int, columns: int, row_tiles: int, blocks: int, device: Any, *, programs: int) -> Split:
    """Divide work among the smallest number of programs that keeps all multiprocessors busy until the end.

    A multiprocessor runs `programs` programs at once.
    """
    slots = programs * multiprocessors(device)
    most = max(1, min(-(-tuning.MOST_ROUNDS * slots // row_tiles), blocks // tuning.LEAST_BLOCKS))
    each = -(-blocks // _parts_of(row_tiles, blocks, slots, most))
    return Split(rows, columns, row_tiles, blocks, each, -(-blocks // each))


@cached(maxsize=1024)  # it tries up to a thousand counts, which takes longer than to launch a kernel
def _parts_of(row_tiles: int, blocks: int, slots: int, most: int) -> int:
    """Return the number of parts, up to `most`, with which all work is done soonest; see :func:`fewest_parts`."""
    return min(range(1, most + 1), key=lambda count: (-(-row_tiles * count // slots) * -(-blocks // count), count))


def even_batch(batch: int, device: Any) -> int:
    """Return the largest number of rows, at most `batch`, whose tiles are divided evenly among all multiprocessors.

    If tiles have 64 or 128 rows and the points are divided into enough parts, such a batch keeps every multiprocessor
    busy in every round. A `batch` that is too short for that is returned unchanged.
    """
    count = multiprocessors(device)
    step = POINT_TILE * count // math.gcd(count, 4)
    return batch // step * step or batch


def blocks_of(x: Any, rows: int, columns: int) -> Any:
    """Return a descriptor for loading blocks of a matrix by TMA. Elements beyond the matrix are read as zeros."""
    from triton.tools.tensor_descriptor import TensorDescriptor

    return TensorDescriptor.from_tensor(x, [rows, columns])


def swizzled(x: Any, rows: int, columns: int) -> Any:
    """Return a tensor descriptor as :func:`blocks_of` does, with the shared-memory layout that Gluon requires."""
    from triton.experimental.gluon import language as gl
    from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

    element = gl.int8 if x.element_size() == 1 else gl.float16
    layout = gl.NVMMASharedLayout.get_default_for([rows, columns], element)
    return TensorDescriptor.from_tensor(x, [rows, columns], layout)


def is_hopper(device: Any) -> bool:
    """Whether a device has Hopper's matrix units; False on ROCm, whose architectures may be numbered 9 too."""
    return rehearsed_card().is_hopper if device.type == "meta" else _is_hopper(device)


@cached(maxsize=64)
def _is_hopper(device: Any) -> bool:
    import torch

    if device.type != "cuda" or torch.version.hip is not None:
        return False
    return bool(torch.cuda.get_device_capability(device)[0] == 9)


def multiprocessors(device: Any) -> int:
    """Return the number of multiprocessors of a device; 1 for the CPU, where Triton's interpreter runs."""
    return rehearsed_card().multiprocessors if device.type == "meta" else _multiprocessors(device)


@cached(maxsize=64)
def _multiprocessors(device: Any) -> int:
    import torch

    return int(torch.cuda.get_device_properties(device).multi_processor_count) if device.type == "cuda" else 1
