"""Dense rows in the layout of sparse rows."""

from __future__ import annotations

import numpy as np
import pytest

from tests.helpers.sparse_rows import words
from tonari.inputs import BFLOAT16
from tonari.sparse import tuning
from tonari.sparse.dense import compressed


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i1", "u1", "i4"])
def test_values_do_not_change(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "ORDERED_ENTRIES", 70)
    rows = (9 * words(11, 30)).astype(dtype)
    rows[4] = 0
    found = compressed(rows, "queries")
    assert found.dtype == (np.float64 if dtype == "f8" else np.float32)
    assert np.array_equal(found.toarray(), rows.astype(found.dtype))
    assert found.copied_bytes == found.nbytes


def test_bfloat16_and_sets() -> None:
    ones = np.array([[0x3F80, 0], [0, 0xC000]], np.uint16).view(BFLOAT16)
    assert compressed(ones, "points").toarray().tolist() == [[1.0, 0.0], [0.0, -2.0]]
    for rows in (np.array([[5.0, 0.0]]), np.array([[True, False]])):
        assert compressed(rows, "points", sets=True).toarray().tolist() == [[1.0, 0.0]]
