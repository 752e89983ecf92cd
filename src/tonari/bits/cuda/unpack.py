"""The unpacking of rows of bits on a device, to a byte for each bit; see kernels/unpack.py."""

from __future__ import annotations

from typing import Any, NamedTuple

from tonari.bits.cuda.memory import unpacked_width
from tonari.cuda.launch import launch

_ROWS, _BYTES, _WARPS = 16, 32, 4


class Unpacked(NamedTuple):
    """Unpacked rows of bits, with a byte for each bit.

    Attributes
    ----------
    rows : int8 tensor of shape (rows, width)
    counts : int32 tensor of shape (rows,)
        The number of set bits in each row.
    """

    rows: Any
    counts: Any


def room_for(rows: int, d: int, device: Any) -> Unpacked:
    """Allocate memory for a number of unpacked rows of d bytes."""
    import torch

    return Unpacked(
        torch.empty((rows, unpacked_width(d)), dtype=torch.int8, device=device),
        torch.empty(rows, dtype=torch.int32, device=device),
    )


def unpack(rows: Any, room: Unpacked) -> Unpacked:
    """Unpack a uint8 tensor of shape (rows, d), whose columns are adjacent, into the first rows of `room`."""
    from tonari.bits.cuda.kernels.unpack import unpack_kernel

    count, d = rows.shape
    unpacked = Unpacked(room.rows[:count], room.counts[:count])
    launch(
        unpack_kernel,
        -(-count // _ROWS),
        {
            "rows_ptr": rows,
            "unpacked_ptr": unpacked.rows,
            "counts_ptr": unpacked.counts,
            "rows": count,
            "d": d,
            "stride": rows.stride(0),
            "width": unpacked.rows.shape[1],
        },
        constants={"ROWS": _ROWS, "BYTES": _BYTES},
        warps=_WARPS,
    )
    return unpacked
