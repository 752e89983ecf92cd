"""The number of refined groups: widths are doubled while this may save time, up to a multiple of the plan's width."""

from __future__ import annotations

import pytest

from tonari.exact.cuda import tuning
from tonari.exact.cuda.screens.widths import Fitted, fitted_width, usual_width, wider, widths_from


@pytest.mark.parametrize("wanted", [1, 7, 48, 49, 1000])
def test_more_groups_than_neighbours_are_refined(wanted: int) -> None:
    assert wanted + 6 <= usual_width(wanted) <= max(wanted + 6, wanted * 9 // 8)
    assert usual_width(wanted) < usual_width(wanted + 1) <= usual_width(wanted) + 2


def test_widths_end_at_a_multiple_of_the_least() -> None:
    assert widths_from(16, 16) == [16, 32, 64, 128]
    assert widths_from(16 * tuning.WIDEST, 16) == [16 * tuning.WIDEST]
    assert widths_from(16 * tuning.WIDEST + 1, 16) == []


@pytest.mark.parametrize(
    ("shares", "width"),
    [
        ([0.0, 0.0, 0.0, 0.0], 16),  # no row is left, so no other width is tried
        ([0.5, 0.4, 0.3, 0.2], 128),
        ([0.5, 0.0, 0.0, 0.0], 32),
        ([0.005, 0.004, 0.003, 0.002], 16),  # a wider attempt takes more time than its proofs save
    ],
)
def test_the_width_that_takes_the_least_time(shares: list[float], width: int) -> None:
    asked = list[int]()

    def unproved(at: int) -> float:
        asked.append(at)
        return shares[widths_from(16, 16).index(at)]

    fitted = fitted_width(16, unproved)
    assert fitted == Fitted(width, shares[widths_from(16, 16).index(width)])
    seconds = {at: at / 16 + tuning.SEARCHED_AGAIN * shares[widths_from(16, 16).index(at)] for at in asked}
    assert seconds[width] == min(seconds.values())
    assert asked == widths_from(16, 16)[: len(asked)]
    assert (len(asked) == 1) == (width == 16)


def test_short_rows_are_retried_with_more_groups() -> None:
    times = [wider(d) for d in range(1, 40)]
    assert times == sorted(times, reverse=True)
    assert times[-1] == 4
