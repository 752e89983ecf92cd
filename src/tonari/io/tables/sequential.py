"""A matrix whose rows are read once and in order, in blocks of any size."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from tonari.io._common import Array, DType


class Sequential:
    """A matrix whose rows are produced on demand; consecutive slices read them once, from the first to the last.

    Parameters
    ----------
    shape : (n, d)
    dtype : dtype
    blocks : iterator of arrays of shape (any, d), together n rows
    names : sequence of str, optional
        Names of the columns.

    Raises
    ------
    IndexError
        A slice does not begin at the end of the previous one.

    Examples
    --------
    >>> import numpy as np
    >>> from tonari.io.tables.sequential import Sequential
    >>> rows = Sequential((3, 1), np.dtype("int8"), iter([np.array([[1], [2]]), np.array([[3]])]))
    >>> rows[:1].tolist(), rows[1:9].tolist()
    ([[1]], [[2], [3]])
    """

    def __init__(
        self, shape: tuple[int, int], dtype: DType, blocks: Iterator[Array], names: Sequence[str] | None = None
    ) -> None:
        self.names = names
        self.shape, self.dtype, self.itemsize = shape, dtype, dtype.itemsize
        self._blocks, self._next = blocks, 0
        self._left: Array = np.empty((0, shape[1]), dtype)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice) -> Array:
        start, stop, _ = rows.indices(len(self))
        if start != self._next:
            raise IndexError(f"row {start} is asked for, the next is {self._next}")
        block: Array = np.empty((stop - start, self.shape[1]), self.dtype)
        done = 0
        while done < len(block):
            if not len(self._left):
                self._left = next(self._blocks)
            count = min(len(self._left), len(block) - done)
            block[done : done + count] = self._left[:count]
            self._left = self._left[count:]
            done += count
        self._next = stop
        if stop == len(self):
            self._end()
        return block

    def _end(self) -> None:
        """Exhaust the iterator of blocks after the last row, so that its final checks can raise an error."""
        for block in self._blocks:
            if len(block):
                raise AssertionError(f"more than {len(self)} rows were produced")
