"""From checked rows to an answer: by the caller's plan, or by a cached plan."""

from __future__ import annotations

from typing import Any

import pytest

import tonari
from tests.helpers import checks

X = checks.gaussian(20, 4)


@pytest.mark.parametrize(
    ("made_for", "message"),
    [
        ({"n": 21}, r"made for n=21, but this search has n=20"),
        ({"m": 19}, r"made for m=19, but this search has m=20"),
        ({"d": 5}, r"made for d=5, but this search has d=4"),
        ({"k": 3}, r"made for k=3, but this search has k=2"),
        ({"metric": "l1"}, r"made for metric='l1', but this search has metric='euclidean'"),
        ({"dtype": "uint8"}, r"made for dtype='uint8', but this search has dtype='float32'"),
    ],
)
def test_a_plan_for_another_problem(made_for: dict[str, Any], message: str) -> None:
    plan = tonari.plan(**({"n": 20, "m": 20, "d": 4, "k": 2} | made_for))
    with pytest.raises(ValueError, match=message):
        tonari.search(X, X, 2, plan=plan)
    with pytest.raises(ValueError, match=message):
        tonari.knn_graph(X, 2, plan=plan)
