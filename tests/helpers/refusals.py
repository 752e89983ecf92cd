"""A check that functions refuse bad values of an argument by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest

from tonari.core.errors import Unsupported


def assert_refused_by_name(call: Callable[..., Any], good: dict[str, Any], name: str, values: Iterable[Any]) -> None:
    """Check that a call succeeds, but not with any of these values for one argument, which the message must name."""
    call(**good)
    for value in values:
        with pytest.raises((TypeError, ValueError), match=name) as refused:
            call(**good | {name: value})
        assert type(refused.value) in (TypeError, ValueError, Unsupported)
