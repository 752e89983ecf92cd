"""Texts for durations."""

from __future__ import annotations

import pytest

from tonari.core.units import duration


@pytest.mark.parametrize(("seconds", "text"), [(0.0, "0 ms"), (0.9994, "999 ms"), (1.0, "1 s"), (83.21, "83.2 s")])
def test_a_duration_has_three_digits_of_milliseconds_or_seconds(seconds: float, text: str) -> None:
    assert duration(seconds) == text
