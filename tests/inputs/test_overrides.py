"""Fields of a plan that a caller may set."""

from __future__ import annotations

from typing import Any

import pytest

from tonari.core.plan import Override
from tonari.inputs.overrides import check_overrides, read_override

KNOWN = {
    "leaf": Override("points of a leaf"),
    "stride": Override("interval; 0: none", least=0),
    "sort": Override("whether", "flag"),
    "route": Override("which", "word"),
    "precisions": Override("which", "words"),
}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("leaf=32", ("leaf", 32)),
        (" leaf = 32 ", ("leaf", 32)),
        ("stride=0", ("stride", 0)),
        ("sort=No", ("sort", False)),
        ("sort=on", ("sort", True)),
        ("route=streamed", ("route", "streamed")),
        ("precisions=int8, float32", ("precisions", ("int8", "float32"))),
    ],
)
def test_texts_are_names_and_values(text: str, expected: tuple[str, Any]) -> None:
    assert read_override(text, KNOWN) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("leaf", "'leaf': expected name=value, such as leaf=…"),
        ("leaf=", "expected name=value"),
        ("leef=3", "'leef' cannot be set; these can be: leaf, .* Did you mean 'leaf'?"),
        ("leaf=many", "leaf=many: expected a whole number of at least 1"),
        ("sort=perhaps", "sort=perhaps: expected yes or no"),
    ],
)
def test_texts_that_say_nothing_are_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_override(text, KNOWN)


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"leaf": 0}, ValueError, "leaf must be a whole number of at least 1, got 0"),
        ({"leaf": 2.5}, (TypeError, ValueError), "leaf"),
        ({"stride": -1}, ValueError, "stride must be a whole number of at least 0"),
        ({"sort": 1}, TypeError, "sort"),
        ({"leef": 1, "abc": 2}, ValueError, "cannot override abc, leef; these can be: leaf, precisions, route"),
        ({"n_jobs": 2}, TypeError, "n_jobs: is no argument here.*threads="),
    ],
)
def test_values_of_another_kind_are_refused(given: dict[str, Any], error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        check_overrides(given, KNOWN)


def test_what_may_be_set_passes() -> None:
    check_overrides({}, KNOWN)
    check_overrides({"leaf": 1, "stride": 0, "sort": False, "route": "anything", "precisions": ("int8",)}, KNOWN)
