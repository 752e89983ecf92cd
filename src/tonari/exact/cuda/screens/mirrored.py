"""The screen of a graph, which computes the score of each pair of rows once and uses it for both rows.

    thresholds    for all rows, from the sample, before the first batch
    screen        the rows of a batch against its own points and those of later batches
                  (kernels/screens/mirrored.py): lists for the rows, and scores for the later points
    note          appends rows with low scores to the lists of the later points
                  (kernels/screens/mirrored_note.py); the list of a point is complete when its own batch starts

This screen halves the number of products, and needs memory for the lists of later points. Batches must be searched in
the order of the rows. If a batch or a part of it is searched again, its rows would be appended twice and found twice,
so all later rows are compared with all points instead.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tonari.core.rows.slices import cut
from tonari.cuda.compiling.rehearsal import to_visit
from tonari.cuda.launch import launch
from tonari.exact.cuda import tuning
from tonari.exact.cuda.refine.group_lists import Listed, Mirrored, Noted
from tonari.exact.cuda.rows.groups import LEAST_GROUP, LISTED, POINT_TILE
from tonari.exact.cuda.rows.pack import PackedPoints, PackedQueries
from tonari.exact.cuda.rows.tiles import (
    RESIDENT_BYTES,
    Lists,
    Split,
    blocks_of,
    even_batch,
    fewest_parts,
    lists_for,
    room_of,
    row_bytes,
    step_of,
)
from tonari.exact.cuda.screens.sampling import Sample
from tonari.exact.cuda.screens.wide_rows import held_tiling, launch_held
from tonari.select.cuda.survivors import power_of_two

MOST_PARTS = 256  # largest number of programs per tile of rows; each may leave its last slots empty


def may_mirror(length: int) -> bool:
    """Whether, for packed rows of `length` bytes, products take longer than the minima of scores."""
    return length > RESIDENT_BYTES


def is_faster(length: int, device: Any) -> bool:
    """Whether a graph of packed rows of `length` bytes is screened faster if each score is computed only once."""
    return may_mirror(length) and (
        held_tiling(length, device, mirrored=True) is not None
        or length >= tuning.LEAST_STREAMED
        or device.type == "cpu"
    )


def noted_bytes(n: int, slots: int, batch: int) -> int:
    """Return the bytes that the screen of a graph needs in addition to the packed rows.

    These bytes hold the limits, a batch's output for later points, and n lists with `slots` entries. Four threads share
    a row and a tile of points, and each of them writes three numbers to a batch's output.
    """
    tiles = -(-n // POINT_TILE)
    return n * (8 * slots + 16) + 4 * POINT_TILE * tiles + batch * 4 * 12 * (tiles + MOST_PARTS)


def slots_within(room: int, n: int, batch: int) -> int:
    """Return the number of slots per row with which the lists of a graph fit into `room` bytes."""
    least = noted_bytes(n, 0, batch)
    return max(0, room - least) // (noted_bytes(n, 1, batch) - least)


class Mirror:
    """The screens of all batches of a graph, which compute the score of each pair of rows once.

    Parameters
    ----------
    points : PackedPoints
        The rows, as points.
    sample : Sample
        Gives the threshold of each row.
    slots : int
        The number of points that earlier batches can append to a row's list.
    batch : int
        The largest number of rows in a batch.
    pack : callable(slice)
        Packs some rows, as queries.
    threshold : callable(PackedQueries)
        Returns the thresholds of packed rows, by the sample.

    Attributes
    ----------
    sample : Sample
    batch : int
        Rows of a batch.
    """

    def __init__(
        self,
        points: PackedPoints,
        sample: Sample,
        slots: int,
        batch: int,
        pack: Callable[[slice], PackedQueries],
        threshold: Callable[[PackedQueries], Any],
    ) -> None:
        import torch

        n, device = points.n, points.low.device
        self.points, self.sample = points, sample
        self.whole = points.values.element_size() == 1
        self.batch = even_batch(batch, device)
        self.thresholds, self.norm, self.rest = (torch.empty(n, dtype=torch.float32, device=device) for _ in range(3))
        self.values = torch.full((n, slots), float("inf"), dtype=torch.float32, device=device)
        self.rows = torch.empty((n, slots), dtype=torch.int32, device=device)
        self.counts = torch.zeros(n, dtype=torch.int32, device=device)
        self._next = 0
        for some in to_visit(cut(n, self.batch), device):
            packed = pack(some)
            self.thresholds[some] = threshold(packed)
            self.norm[some], self.rest[some] = packed.norm, packed.rest

    @property
    def _errors(self) -> dict[str, Any]:
        return {"norm_ptr": self.norm, "rest_ptr": self.rest}

    def takes(self, first: int, count: int) -> bool:
        """Whether the `count` rows from row `first` on are the next batch in order, in whole tiles."""
        end = first + count
        return first == self._next and (end == self.points.n or end % POINT_TILE == 0)

    def screened(self, queries: PackedQueries, first: int) -> Mirrored:
        """Screen the next batch, from row `first` on; append its rows to the lists of later points near them."""
        m = len(queries.values)
        # -1, which no batch follows, until all launches succeed: a repeated batch would append its rows twice
        self._next = -1
        here = slice(first, first + m)
        listed = self._screen(queries, first)
        self._next = first + m
        noted = Noted(self.values[here], self.rows[here], self.counts[here], self.thresholds[here])
        return Mirrored(listed, noted)

    def _screen(self, queries: PackedQueries, first: int) -> Listed:
        import torch

        device, n = self.values.device, self.points.n
        m = len(queries.values)
        tiling = held_tiling(row_bytes(queries.values), device, mirrored=True, whole=self.whole)
        split = _split(m, n, first, device) if tiling is None else tiling.split(m, n, first, device)
        lists = lists_for(m, split, room_of(split, n, self.sample.capacity), device)
        shape, segments = (m, 4 * split.parts * split.each), 4 * split.parts
        noted = {"nearest_ptr": torch.empty(shape, dtype=torch.float32, device=device)}
        noted |= {name: torch.empty(shape, dtype=torch.int32, device=device) for name in ("groups_ptr", "masks_ptr")}
        noted["noted_ptr"] = torch.empty((m, segments), dtype=torch.int32, device=device)
        terms = {
            "shift_ptr": queries.shift,
            **self._errors,
            "thresholds_ptr": self.thresholds,
            "limits_ptr": self._limits(first, m),
            **noted,
        }
        if tiling is None:
            self._launch_streamed(queries.values, split, lists, terms, first)
        else:
            launch_held(queries.values, self.points, tiling, split, lists, terms, first=first)
        if first + m < n:
            self._launch_note(m, first, split, noted)
        return Listed(lists, self.thresholds[first : first + m])

    def _launch_streamed(self, rows: Any, split: Split, lists: Lists, terms: dict[str, Any], first: int) -> None:
        from tonari.exact.cuda.kernels.screens.mirrored import screen_mirrored_kernel

        points, step = self.points, step_of(rows)
        m, width = rows.shape
        launch(
            screen_mirrored_kernel,
            split.row_tiles * split.parts,
            {
                "queries": blocks_of(rows, tuning.MIRRORED_ROWS, step),
                "points": blocks_of(points.values, POINT_TILE, step),
                **points.terms,
                **lists.output,
                **terms,
                "first": first,
                "m": m,
                "width": width,
                "row_tiles": split.row_tiles,
                "blocks": -(-points.n // POINT_TILE),
                "blocks_per_program": split.each,
            },
            constants={
                "ROWS": tuning.MIRRORED_ROWS,
                "COLUMNS": POINT_TILE,
                "STEP": step,
                "GROUP": LEAST_GROUP,
                "LISTED": LISTED,
                "STAGES": tuning.MIRRORED_STAGES,
            },
            warps=tuning.MIRRORED_WARPS,
        )

    def _limits(self, first: int, m: int) -> Any:
        """Return each later point's limit: the largest score with which a row of the batch enters the point's list."""
        import torch

        from tonari.exact.cuda.kernels.screens.mirrored_note import limits_kernel

        points, tiles = self.points, -(-self.points.n // POINT_TILE)
        limits = torch.empty(tiles * POINT_TILE, dtype=torch.float32, device=self.values.device)
        launch(
            limits_kernel,
            tiles,
            {
                "thresholds_ptr": self.thresholds,
                "limits_ptr": limits,
                **self._errors,
                **points.terms,
                "first": first,
                "m": m,
                "n": points.n,
            },
            constants={"POINT_TILE": POINT_TILE, "TILES": tuning.COMPARED_TILES, "WHOLE": self.whole},
            warps=4,
        )
        return limits

    def _launch_note(self, m: int, first: int, split: Split, noted: dict[str, Any]) -> None:
        from tonari.exact.cuda.kernels.screens.mirrored_note import note_kernel

        launch(
            note_kernel,
            m,
            {
                **noted,
                "thresholds_ptr": self.thresholds,
                **self._errors,
                **self.points.terms,
                "values_ptr": self.values,
                "rows_ptr": self.rows,
                "counts_ptr": self.counts,
                "first": first,
                "segments": 4 * split.parts,
                "segment_room": split.each,
                "room": self.values.shape[1],
            },
            constants={
                "LISTED": LISTED,
                "POINT_TILE": POINT_TILE,
                "SEGMENTS": power_of_two(4 * split.parts),
                "SLOTS": tuning.NOTE_SLOTS,
                "WHOLE": self.whole,
            },
            warps=tuning.NOTE_WARPS,
        )


def _split(m: int, n: int, first: int, device: Any) -> Split:
    """Divide the work of a batch among programs; a multiprocessor runs one program at once."""
    row_tiles, blocks = -(-m // tuning.MIRRORED_ROWS), -(-n // POINT_TILE) - first // POINT_TILE
    return fewest_parts(tuning.MIRRORED_ROWS, POINT_TILE, row_tiles, blocks, device, programs=1)
