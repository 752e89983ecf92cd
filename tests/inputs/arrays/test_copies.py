"""The bytes of copies, and the memory that they leave."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tonari import inputs
from tonari.core.errors import BudgetExceeded

ROWS = np.zeros((6, 4), np.float32)


@pytest.mark.parametrize(
    ("x", "expected"),
    [
        (ROWS, 0),
        (ROWS[:0], 0),
        (ROWS[:, ::2], 6 * 2 * 4),
        (ROWS.astype(">f4"), 6 * 4 * 4),
        (ROWS.astype(np.int16), 6 * 4 * 4),
        (ROWS.astype(bool), 0),
        ([[1, 2], [3, 4], [5, 6]], 3 * 2 * 12),
        ([], 0),
        (object(), 0),
    ],
)
def test_bytes_of_copies(x: Any, expected: int) -> None:
    assert inputs.copied_bytes(x) == expected


def test_bytes_of_packed_bools() -> None:
    bools = np.zeros((6, 12), bool)
    assert inputs.copied_bytes(bools, bits=True) == 6 * 2
    assert inputs.copied_bytes(bools[:, ::-1], bits=True) == 2 * 6 * 2


def test_copies_are_taken_from_the_budget() -> None:
    with inputs.after_copies(600, 1000) as left:
        assert left == 400
    with inputs.after_copies(600, None) as left:
        assert left is None


def test_a_refusal_names_enough_for_copies_and_search() -> None:
    with (
        pytest.raises(
            BudgetExceeded, match="copies of rows take 600, and the search needs 500 more: allow at least 1100"
        ) as caught,
        inputs.after_copies(600, 1000),
    ):
        raise BudgetExceeded("too little", least=500)
    assert caught.value.least == 1100
    with pytest.raises(BudgetExceeded, match="allow at least 1007"), inputs.after_copies(1000, 900, least=lambda: 7):
        pass
