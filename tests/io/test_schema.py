"""Fields of JSON objects from any source."""

from __future__ import annotations

import math
from typing import Any

import pytest

from tonari.io.schema import Test, check, flag, list_of, none_or, one_of, real, text, whole


@pytest.mark.parametrize(
    ("test", "good", "bad"),
    [
        (whole(1), [1, 2**80], [0, True, 1.0, "1", None]),
        (whole(0, 3), [0, 3], [-1, 4]),
        (real(0.0), [0, 0.5, 1e300], [-1e-9, math.nan, math.inf, True, "0", None]),
        (real(0.0, 1.0), [0, 1], [1.5]),
        (text, ["", "a"], [1, None, ["a"]]),
        (flag, [True, False], [0, 1, None]),
        (one_of("a", "b"), ["a", "b"], ["c", "", None, ["a"]]),
        (none_or(whole(1)), [None, 1], [0, "None"]),
        (list_of(whole(0)), [[], [0, 1]], [[-1], (1,), None, {"0": 1}]),
    ],
)
def test_values_pass_or_not(test: Test, good: list[Any], bad: list[Any]) -> None:
    assert all(test(value) for value in good)
    assert not any(test(value) for value in bad)


FIELDS = {"k": whole(1), "metric": text}


@pytest.mark.parametrize(
    ("found", "message"),
    [
        ({"k": 1}, "it has no request metric"),
        ({"k": 0, "metric": "l1"}, "its request k is 0"),
        ({"k": 1, "metric": "l1", "more": 2}, "it has an unknown request 'more'"),
        ({"k": 1, "metric": "l1", "note": 2}, "its request note is 2"),
        ([1], r"its request is \[1\]"),
        ({"k": "9" * 500, "metric": "l1"}, "its request k is '9{79}$"),
    ],
)
def test_the_first_field_that_is_wrong_is_named_shortly(found: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check(found, FIELDS, "request", optional={"note": text})


def test_optional_fields_may_be_left_out() -> None:
    check({"k": 1, "metric": "l1"}, FIELDS, optional={"note": text})
    check({"k": 1, "metric": "l1", "note": "x"}, FIELDS, optional={"note": text})
    with pytest.raises(ValueError, match=r"^it has no metric$"):
        check({"k": 1}, FIELDS)
