"""Checks of JSON objects in files, field by field, because a hostile file can have a valid checksum."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

Test = Callable[[Any], bool]


def whole(least: int, most: float = math.inf) -> Test:
    """Return a test that accepts whole numbers from `least` to `most`.

    >>> whole(1)(3), whole(1)(0), whole(1)(True), whole(1)(2.0)
    (True, False, False, False)
    """
    return lambda value: type(value) is int and least <= value <= most


def real(least: float, most: float = math.inf) -> Test:
    """Return a test that accepts finite numbers from `least` to `most`."""
    return lambda value: type(value) in (int, float) and math.isfinite(value) and least <= value <= most


def text(value: Any) -> bool:
    """Return whether a value is a string."""
    return isinstance(value, str)


def flag(value: Any) -> bool:
    """Return whether a value is true or false."""
    return isinstance(value, bool)


def one_of(*known: str) -> Test:
    """Return a test that accepts only the strings in `known`."""
    return lambda value: isinstance(value, str) and value in known


def none_or(test: Test) -> Test:
    """Return a test that accepts null and values that pass another test."""
    return lambda value: value is None or test(value)


def list_of(test: Test) -> Test:
    """Return a test that accepts lists whose elements all pass another test."""
    return lambda value: isinstance(value, list) and all(map(test, value))


def map_of(test: Test) -> Test:
    """Return a test that accepts JSON objects whose values all pass another test."""
    return lambda value: isinstance(value, dict) and all(map(test, value.values()))


def check(
    found: Any, fields: Mapping[str, Test], where: str = "", *, optional: Mapping[str, Test] | None = None
) -> None:
    """Raise ValueError for the first field of a JSON object that is missing, unknown, or does not pass its test.

    `fields` and `optional` map field names to tests; `where` names the object in messages.

    Examples
    --------
    >>> from tonari.io.schema import check, whole
    >>> check({"k": 0}, {"k": whole(1)}, "request")
    Traceback (most recent call last):
    ValueError: its request k is 0
    """
    before = f"{where} " if where else ""
    if not isinstance(found, dict):
        raise ValueError(f"its {where} is {found!r:.80}")
    every = {**fields, **(optional or {})}
    for name in fields:
        if name not in found:
            raise ValueError(f"it has no {before}{name}")
    for name, value in found.items():
        if name not in every:
            raise ValueError(f"it has an unknown {before}{name!r:.80}")
        if not every[name](value):
            raise ValueError(f"its {before}{name} is {value!r:.80}")
