"""Overrides: checks of the plan fields that a caller sets, and their parsing from text."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any

from tonari.core.hints import argument_hint
from tonari.core.plan import Override
from tonari.inputs.arguments import check_flag, check_whole

_FLAGS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


Overrides = Mapping[str, Override]


def check_overrides(given: Mapping[str, Any], known: Overrides) -> None:
    """Check the names and the types of plan fields that a caller sets.

    Conditions that depend on the problem are checked by the planner.

    Raises
    ------
    TypeError
        The value of a flag is neither True nor False; or a name is an argument of other functions.
    ValueError
        A name is unknown; or a value is not a whole number, or is too small.

    Examples
    --------
    >>> check_overrides({"leaf": 0}, {"leaf": Override("points of a leaf")})
    Traceback (most recent call last):
    ValueError: leaf must be a whole number of at least 1, got 0
    """
    if not given:
        return
    unknown = sorted(set(given) - set(known))
    if unknown:
        hinted = next((name for name in unknown if argument_hint(name)), None)
        if hinted is not None:
            raise TypeError(f"{hinted}: is no argument here{argument_hint(hinted)}")
        raise ValueError(f"cannot override {', '.join(unknown)}; these can be: {', '.join(sorted(known))}")
    for name, value in given.items():
        kind = known[name].kind
        if kind == "whole":
            check_whole(name, value, least=known[name].least)
        elif kind == "flag":
            check_flag(value, name)


def read_override(text: str, known: Overrides) -> tuple[str, Any]:
    """Parse the name and the value of a plan field from text such as "leaf=32", "sort=no" or "precisions=int8,float32".

    Raises
    ------
    ValueError
        The text has no "=", the name is unknown, or the value is not of the type of this field.

    Examples
    --------
    >>> read_override("leaf=32", {"leaf": Override("points of a leaf")})
    ('leaf', 32)
    """
    name, equals, value = (part.strip() for part in text.partition("="))
    if not equals or not value:
        raise ValueError(f"{text!r}: expected name=value, such as {next(iter(known))}=…")
    if name not in known:
        near = difflib.get_close_matches(name, known, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise ValueError(f"{name!r} cannot be set; these can be: {', '.join(sorted(known))}.{hint}")
    kind = known[name].kind
    if kind == "word":
        return name, value
    if kind == "words":
        return name, tuple(part.strip() for part in value.split(","))
    if kind == "flag":
        if value.lower() not in _FLAGS:
            raise ValueError(f"{name}={value}: expected yes or no")
        return name, _FLAGS[value.lower()]
    try:
        return name, int(value)
    except ValueError:
        raise ValueError(f"{name}={value}: expected a whole number of at least {known[name].least}") from None
