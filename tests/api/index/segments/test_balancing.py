"""An Index keeps few segments when points are added and removed."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import tonari
from tests.helpers import checks
from tests.helpers.checks import assert_same_neighbors
from tonari.api import tuning
from tonari.api.index.segments import part

D = 3


def test_segments_are_few_when_rows_come_one_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    packed = [0]
    made = part.Part.__init__

    def counted(self: Any, segment: Any, *given: Any) -> None:
        made(self, segment, *given)
        packed[0] += segment.n

    monkeypatch.setattr(tuning, "SMALL", 4)
    monkeypatch.setattr(part.Part, "__init__", counted)
    points = checks.gaussian(260, D)
    index = tonari.Index(points[:1], method="exact")
    for row in points[1:]:
        index.add(row[None])
        sizes = [part.n for part in index._state.parts]
        assert len(sizes) <= 2 + np.log2(len(index))
        assert all(left >= max(4, 2 * right) for left, right in itertools.pairwise(sizes))
    assert packed[0] < 260 * (4 + np.log2(260) / np.log2(1.5))
    assert_same_neighbors(index.search(points[:9], 5), tonari.search(points[:9], points, 5))
