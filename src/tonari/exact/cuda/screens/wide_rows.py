"""The screen of wide rows on Hopper, whose kernel keeps the queries in shared memory (kernels/screens/wide_rows.py)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tonari.cuda.launch import launch
from tonari.exact.cuda import tuning
from tonari.exact.cuda.rows.groups import POINT_TILE
from tonari.exact.cuda.rows.tiles import (
    RESIDENT_BYTES,
    STEP_BYTES,
    Lists,
    Split,
    fewest_parts,
    is_hopper,
    step_of,
    swizzled,
)

# Bytes of shared memory. SHARED: of a multiprocessor. OF_PROGRAM: largest number for one program. RESERVED: taken from
# each program by the system. BESIDE: needed by a program in addition to queries and buffers of points.
SHARED, OF_PROGRAM, RESERVED, BESIDE = 233_472, 232_448, 1024, 640
# Largest bytes of rows that stay in shared memory. LARGEST: in usual screens, with two programs on a multiprocessor.
# LARGEST_MIRRORED: in the screen of a graph.
LARGEST, LARGEST_MIRRORED = 1024, 2816
# Names of the kernel's outputs, in addition to lists, in the screen of a graph (screens/mirrored.py).
NOTED = ("nearest_ptr", "groups_ptr", "masks_ptr", "noted_ptr")


@dataclass(frozen=True)
class HeldTiling:
    """The sizes of tiles and programs for rows of one length.

    Attributes
    ----------
    stages : int
        Buffers of points.
    programs : int
        Number of programs that a multiprocessor runs at once.
    rows, warps, registers : int
        Rows of a tile, warps of a program, and registers of a thread.
    """

    stages: int
    programs: int
    rows: int = field(default_factory=lambda: tuning.WIDE_ROWS)
    warps: int = field(default_factory=lambda: tuning.WIDE_WARPS)
    registers: int = field(default_factory=lambda: tuning.WIDE_REGISTERS)

    def split(self, m: int, n: int, first: int, device: Any) -> Split:
        """Divide the work of comparing m rows with the points [first, n)."""
        blocks = -(-n // POINT_TILE) - first // POINT_TILE
        return fewest_parts(self.rows, POINT_TILE, -(-m // self.rows), blocks, device, programs=self.programs)


def held_tiling(length: int, device: Any, *, mirrored: bool = False, whole: bool = False) -> HeldTiling | None:
    """Return the tiling for packed rows of `length` bytes; None if another screen is used for them.

    `whole` is True for int8.

    Rows of up to RESIDENT_BYTES have other kernels (screens/all_minima.py). The widest rows use this kernel only in the
    screen of a graph, where minima take so long that one warpgroup per multiprocessor is as fast as several.
    """
    if not RESIDENT_BYTES < length <= (LARGEST_MIRRORED if mirrored else LARGEST) or not is_hopper(device):
        return None
    return tiling_of(length, tall=mirrored and whole and length <= tuning.TALL_TO)


def tiling_of(length: int, *, tall: bool = False) -> HeldTiling:
    """Return the tiling for rows of up to LARGEST_MIRRORED bytes on Hopper; `tall` requests tiles of more rows.

    >>> [(made.stages, made.programs) for made in map(tiling_of, (512, 1536))]
    [(5, 2), (5, 1)]
    """
    rows, warps, registers = tuning.TALL if tall else (tuning.WIDE_ROWS, tuning.WIDE_WARPS, tuning.WIDE_REGISTERS)

    def stages(programs: int) -> int:
        room = min(OF_PROGRAM, SHARED // programs - RESERVED) - BESIDE - rows * length
        return min(tuning.MOST_STAGES, room // (POINT_TILE * STEP_BYTES))

    programs = tuning.WIDE_PROGRAMS if not tall and stages(tuning.WIDE_PROGRAMS) >= tuning.LEAST_STAGES else 1
    return HeldTiling(stages(programs), programs, rows, warps, registers)


def launch_held(
    rows: Any, points: Any, tiling: HeldTiling, split: Split, lists: Lists, terms: dict[str, Any], *, first: int = 0
) -> None:
    """List the groups at or below each query's threshold; in a graph, also record the near points of later batches.

    kernels/screens/mirrored.py explains these records.

    Parameters
    ----------
    rows : float16 or int8 tensor of shape (m, width)
        Packed queries.
    points : PackedPoints
        The points; the screen starts at point `first`.
    tiling : HeldTiling
    split : Split
        How the tiles of queries and the blocks of points are divided among programs.
    lists : Lists
        Output.
    terms : dict
        The error terms and thresholds; for a graph also the limits, the shifts of the queries, and the outputs for the
        records. For a graph these arrays cover all rows; only the shifts and the records cover just this batch.
    first : int
    """
    from tonari.exact.cuda.kernels.screens.wide_rows import screen_held_kernel

    (m, width), step = rows.shape, step_of(rows)
    launch(
        screen_held_kernel,
        split.row_tiles * split.parts,
        {
            "queries": swizzled(rows, tiling.rows, step),
            "points": swizzled(points.values, POINT_TILE, step),
            **points.terms,
            **lists.output,
            **dict.fromkeys(("shift_ptr", "limits_ptr", *NOTED)),
            **terms,
            "first": first,
            "m": m,
            "width": width,
            "row_tiles": split.row_tiles,
            "blocks": -(-points.n // POINT_TILE),
            "blocks_per_program": split.each,
        },
        constants={
            "ROWS": tiling.rows,
            "COLUMNS": POINT_TILE,
            "STEP": step,
            "STAGES": tiling.stages,
            "HELD": width // step,
            "WARPS": tiling.warps,
            "MIRRORED": NOTED[0] in terms,
        },
        warps=tiling.warps,
        registers=tiling.registers,
    )
