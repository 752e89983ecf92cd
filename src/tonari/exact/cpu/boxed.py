"""A search of few queries among coded points: codes are read only in boxes that the query reaches.

Each query begins with its nearest boxes. Their best points by code are read, and their exact values give a
threshold. All other boxes that the threshold reaches are then screened, on all threads.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tonari.core import _native
from tonari.core.process.workers import Workers
from tonari.exact import tuning
from tonari.exact.cpu.join import Bounds
from tonari.exact.cpu.rows.boxes import Boxes, Squares


class Boxed:
    """The codes of all points in their boxes, and the threads that search them.

    Parameters
    ----------
    boxes : Boxes
    packed : list of PackedPoints
        The codes, in slices.
    workers : Workers
    isa : str
        The instruction set of the plan.
    """

    def __init__(self, boxes: Boxes, packed: list[_native.PackedPoints], workers: Workers, isa: str) -> None:
        self._boxes, self._packed, self._workers, self._isa = boxes, packed, workers, isa
        counts = [0, *(part.count for part in packed)]
        self._begins = np.cumsum(counts)[:-1] // boxes.group  # the first group of each slice

    def search(
        self,
        queries: Any,
        new_block: Callable[[], _native.RowBlock],
        close_block: Callable[[Bounds, _native.RowBlock], int],
        beyond: Callable[[Bounds], int],
    ) -> int:
        """Compare each query with the boxes, and with the codes in boxes that it reaches.

        Return the sum of the results of `close_block`, or of `beyond` for a query that is beyond the range of boxes.
        """
        blocks = [new_block() for _ in range(self._workers.threads)]
        refined = 0
        with self._workers:
            for row in range(len(queries)):
                sketch = self._boxes.sketched(queries[row : row + 1])
                if sketch is None:
                    refined += beyond((row, row + 1))
                    continue
                self._screen((row, row + 1), blocks, self._boxes.squares(sketch, self._isa, self._workers))
                refined += close_block((row, row + 1), blocks[0])
        return refined

    def _screen(self, bounds: Bounds, blocks: list[_native.RowBlock], squares: Squares) -> None:
        """Screen the boxes that a query reaches, and collect the candidates in the first block.

        Each thread has a block, and screens a share of the slices. Few points are screened by fewer threads.
        """
        boxes, first = self._boxes, blocks[0]
        first.open(*bounds)
        nearest = np.empty(min(len(squares), tuning.BOXED_FIRST), np.int64)
        _native.nearest_boxes(squares, nearest)
        each = boxes.cell // boxes.group
        slices = np.searchsorted(self._begins, nearest * each, "right") - 1
        for group, at in zip((nearest * each - self._begins[slices]).tolist(), slices.tolist(), strict=True):
            part = self._packed[at]
            first.screen(part, group, min(group + each, part.groups))
        for _ in range(tuning.BOXED_ROUNDS):
            first.lower_thresholds()
        left = boxes.within(squares, first.reach(0))
        left[nearest] = False
        marks = boxes.groups(left)
        most = int(np.count_nonzero(left)) * boxes.cell // tuning.BOXED_SHARED
        used = blocks[: max(1, most)]
        for other in used[1:]:
            other.open(*bounds)
            other.take_thresholds(first)

        def work(share: int) -> None:
            block, step = used[share], len(used)
            for part, begin in zip(self._packed[share::step], self._begins[share::step].tolist(), strict=True):
                self._workers.check()
                block.screen_marked(part, 0, part.groups, marks[begin : begin + part.groups])

        self._workers.map(work, range(len(used)))
        for other in used[1:]:
            first.absorb(other)
