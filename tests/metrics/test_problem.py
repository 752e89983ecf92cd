"""Problems: checks of a request before it is planned."""

from __future__ import annotations

from typing import Any

import pytest

from tonari.core.errors import Unsupported
from tonari.metrics.problem import make_problem, refuse_metric, usual_dtype

ASKED: dict[str, Any] = {"n": 100, "m": 10, "d": 4, "k": 3, "dtype": "float32", "metric": "euclidean"}


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"n": 0}, ValueError, "n must be at least 1, got 0"),
        ({"m": 0}, ValueError, "m must be at least 1, got 0"),
        ({"d": -1}, ValueError, "d must be at least 1, got -1"),
        ({"k": 101}, ValueError, "k"),
        ({"self_join": True}, ValueError, "as many queries as points, got m=10 and n=100"),
        ({"m": 100, "k": 100, "self_join": True}, ValueError, "k"),
        ({"dtype": "int16"}, ValueError, "dtype int16 is not supported; expected one of"),
        ({"query_dtype": "complex64"}, ValueError, "dtype complex64 is not supported"),
        ({"metric": "euclid"}, ValueError, "unknown metric 'euclid'"),
        ({"metric": "haversine"}, Unsupported, "compares changed rows"),
        ({"devices": ("cuda:0",), "threads": 2}, ValueError, "threads"),
        ({"memory": "many"}, ValueError, "memory"),
    ],
)
def test_what_nobody_can_answer_is_refused(given: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make_problem(**ASKED | given)


def test_names_are_the_usual_ones_and_sizes_are_bytes() -> None:
    made = make_problem(**ASKED | {"metric": "Manhattan", "memory": "1MB"})
    assert (made.metric, made.memory, made.query_dtype) == ("l1", 10**6, "float32")
    assert make_problem(**ASKED | {"query_dtype": "float64"}).value_dtype == "float64"
    assert make_problem(**ASKED | {"m": 100, "k": 99, "self_join": True}).k == 99


@pytest.mark.parametrize(
    ("metric", "reason"), [("euclidean", None), ("hamming", "use method='bits'"), ("triton:mine", "a Triton function")]
)
def test_metrics_that_few_methods_support(metric: str, reason: str | None) -> None:
    why = refuse_metric(make_problem(**ASKED | {"metric": metric, "dtype": usual_dtype(metric)}))
    assert (why is None) if reason is None else reason in (why or "")
