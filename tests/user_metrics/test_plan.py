"""Blocks of queries and points within a budget."""

from __future__ import annotations

import numpy as np
import pytest

from tonari.core.errors import BudgetExceeded
from tonari.user_metrics import tuning
from tonari.user_metrics.plan import plan_given
from tonari.user_metrics.values import FunctionValues, MatrixValues

TABLE = MatrixValues(np.zeros((100, 5000)))


def test_blocks_hold_a_bounded_number_of_distances_and_of_numbers() -> None:
    assert plan_given(TABLE, 5, None).rows == min(tuning.BLOCK_ROWS, tuning.BLOCK_VALUES // 5000)
    wide = FunctionValues(lambda a, B: B[:, 0], np.zeros((9, 1000)), np.zeros((5000, 1000)), "function:f")
    assert plan_given(wide, 5, None).columns == tuning.FUNCTION_NUMBERS // 1000
    assert plan_given(MatrixValues(np.zeros((1, 10))), 1, None).columns == 10


def test_memory_limits_the_rows_of_a_block() -> None:
    whole = plan_given(TABLE, 5, None)
    least = whole.output_bytes + 6 * 5000 * 8 + 2 * 8  # copies of one query's distances, and a function's block
    for memory in (least, 2 * least, 10**7):
        made = plan_given(TABLE, 5, memory)
        assert 1 <= made.rows <= whole.rows
        assert made.working_bytes + made.output_bytes <= memory
    with pytest.raises(BudgetExceeded, match=f"allow at least {least}") as told:
        plan_given(TABLE, 5, least - 1)
    assert told.value.least == least
