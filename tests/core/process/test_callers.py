"""Warnings point to the line that called the library."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

from tonari.core.process.callers import callers_level


def frames(names: list[str]) -> Any:
    """Make a function of the first module that calls one of the second, and so on; the last one warns."""
    call: Any = None
    for name in reversed(names):
        given = {"__name__": name, "call": call, "warnings": warnings, "callers_level": callers_level}
        body = "call()" if call else "warnings.warn('look', stacklevel=callers_level())"
        exec(compile(f"def here():\n    {body}\n", f"{name}.py", "exec"), given)
        call = given["here"]
    return call


@pytest.mark.parametrize(
    ("names", "told"),
    [
        (["mine", "tonari.api"], "mine.py"),
        (["other", "mine", "tonari.api", "tonari.core.plan"], "mine.py"),
        (["mine", "tonari.api", "torch._dynamo", "tonari.exact"], "mine.py"),
        (["tonari_of_mine", "tonari.api"], "tonari_of_mine.py"),
    ],
)
def test_the_caller_is_the_last_that_is_not_ours(names: list[str], told: str) -> None:
    with pytest.warns(UserWarning, match="look") as caught:
        frames(names)()
    assert caught[0].filename == told
