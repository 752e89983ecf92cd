"""Proof of a selection before it is timed.

Every row must have k existing columns with the values in these columns, in order, with equal values by ascending index.
Some rows must have exactly the values and indices of a stable sort.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import numpy.typing as npt

from .rows import WrongAnswer

Array = npt.NDArray[Any]

PROVED_ROWS = 4
# Maximum number of values in a block of rows, where all rows are verified.
PROVED_VALUES = 2**27
PROOF = "a stable sort"


def smallest(row: Array, k: int) -> Array:
    """Return the columns of a row's k smallest values in the order of a stable sort, without sorting the whole row."""
    bound = np.partition(row, k - 1)[k - 1]
    columns = np.flatnonzero(row <= bound)
    return columns[np.argsort(row[columns], kind="stable")][:k]


class Proof:
    """The true k smallest values of some rows of a tensor (rows, n): the first row, the last one, and some between."""

    def __init__(self, tensor: Any, k: int) -> None:
        self.tensor, self.k = tensor, k
        self.rows = np.unique(np.linspace(0, len(tensor) - 1, PROVED_ROWS).astype(int))
        lines = [_as_numpy(tensor[row]) for row in self.rows]
        self.indices = np.stack([smallest(line, k) for line in lines])
        self.values = np.stack([line[columns] for line, columns in zip(lines, self.indices, strict=True)])

    def narrowed(self, k: int) -> Proof:
        """Return the proof for a smaller k, which consists of the first k entries of this one."""
        other = copy.copy(self)
        other.k, other.indices, other.values = k, self.indices[:, :k], self.values[:, :k]
        return other

    def check(self, found: Any) -> int:
        """Raise WrongAnswer unless the selection ``found`` is right; return the number of compared rows."""
        import torch

        rows, n = self.tensor.shape
        values, indices = (torch.as_tensor(part, device=self.tensor.device) for part in found)
        shape = (rows, self.k)
        if tuple(values.shape) != shape or tuple(indices.shape) != shape:
            raise WrongAnswer(f"shapes {tuple(values.shape)} and {tuple(indices.shape)}, expected {shape}")
        if values.dtype != self.tensor.dtype or indices.dtype != torch.int32:
            raise WrongAnswer(f"types {values.dtype} and {indices.dtype}")
        if bool((indices < 0).any()) or bool((indices >= n).any()):
            raise WrongAnswer(f"an index outside 0 to {n - 1}")
        self._no_row_of(self.tensor.gather(1, indices.long()) != values, "holds values of other columns")
        before, after = values[:, :-1], values[:, 1:]
        later = indices[:, 1:] > indices[:, :-1]
        self._no_row_of(~((before < after) | ((before == after) & later)), "is out of order")
        for name, ours, true in (("values", values, self.values), ("indices", indices, self.indices)):
            mine = _as_numpy(ours[torch.as_tensor(self.rows, device=ours.device)])
            wrong = (mine != true).any(axis=1)
            if wrong.any():
                at = int(np.argmax(wrong))
                column = int(np.argmax(mine[at] != true[at]))
                raise WrongAnswer(
                    f"{name} of row {self.rows[at]} differ at place {column}: {mine[at][column]}, "
                    f"a stable sort has {true[at][column]}"
                )
        return len(self.rows)

    def check_values(self, values: Any) -> None:
        """Raise WrongAnswer unless a peer's values for the verified rows are right; it may break ties in any way."""
        import torch

        mine = torch.as_tensor(values, device=self.tensor.device)
        if (_as_numpy(mine[torch.as_tensor(self.rows, device=mine.device)]) != self.values).any():
            raise WrongAnswer("the peer's values differ from a stable sort's")

    def _no_row_of(self, fault: Any, message: str) -> None:
        rows = fault.any(dim=1)
        if bool(rows.any()):
            raise WrongAnswer(f"row {int(rows.int().argmax())} {message}")


def _as_numpy(tensor: Any) -> Array:
    import torch

    host = tensor.float() if tensor.dtype == torch.bfloat16 else tensor
    found: Array = host.cpu().numpy()
    return found


def prove_both(tensor: Any, k: int, ordered: Any, unordered: Any) -> int:
    """Raise WrongAnswer unless both answers are right in all rows; return the number of rows.

    If an answer's pairs (value, column) ascend, they are k different pairs. If exactly k pairs of the row do not exceed
    the last one, the answer's pairs are the k smallest.
    """
    import torch

    rows, n = tensor.shape
    for part in (*ordered, *unordered):
        if tuple(part.shape) != (rows, k):
            raise WrongAnswer(f"shape {tuple(part.shape)}, expected {(rows, k)}")
    (values, columns), (loose_values, loose_columns) = (
        tuple(torch.as_tensor(part, device=tensor.device) for part in found) for found in (ordered, unordered)
    )
    places = torch.arange(n, dtype=torch.int32, device=tensor.device)
    step = max(1, PROVED_VALUES // n)
    for begin in range(0, rows, step):
        block = slice(begin, begin + step)
        row, best, at, loose = tensor[block], values[block], columns[block], loose_columns[block]
        for each in (at, loose):
            _none((each < 0) | (each >= n), begin, "has an index out of range")
        _none(row.gather(1, at.long()) != best, begin, "holds values of other columns")
        before, after = best[:, :-1], best[:, 1:]
        later = at[:, :-1] < at[:, 1:]
        _none(~((before < after) | ((before == after) & later)), begin, "is out of order")
        last = best[:, -1:]
        reached = (row < last) | ((row == last) & (places <= at[:, -1:]))
        _none(reached.sum(dim=1, keepdim=True) != k, begin, "does not have the smallest")
        _none(row.gather(1, loose.long()) != loose_values[block], begin, "in any order holds values of other columns")
        _none(at.sort(dim=1).values != loose.sort(dim=1).values, begin, "in any order has other columns")
    return rows


def _none(fault: Any, begin: int, message: str) -> None:
    rows = fault.any(dim=1)
    if bool(rows.any()):
        raise WrongAnswer(f"row {begin + int(rows.int().argmax())} {message}")
