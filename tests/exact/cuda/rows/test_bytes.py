"""Rows of whole numbers that fit into one byte: the shifts that make them fit, and rows that do not fit."""

from __future__ import annotations

from typing import Any

from tests.helpers.devices import HAS_TORCH, needs_torch

if HAS_TORCH:
    import torch

    from tonari.exact.cuda.rows.bytes import shifts_of

pytestmark = needs_torch


def test_the_shifts_are_those_by_which_all_elements_fit() -> None:
    cases0: list[Any] = [
        (0, 255, [128]),
        (-128, 127, [0]),
        (0, 127, [128, 0]),
        (-1, 128, []),
        (0, 256, []),
        (-129, 0, []),
    ]
    for least, most, expected in cases0:
        for dtype in ["float32", "float64", "int32"]:
            rows = torch.zeros((9, 2), dtype=getattr(torch, dtype))
            rows[7, 0], rows[8, 1] = least, most
            assert shifts_of(rows) == expected


def test_fractions_are_no_bytes() -> None:
    for row in [0, 8]:
        rows: Any = torch.ones((9, 2))
        rows[row, 1] = 1.5
        assert shifts_of(rows) == []
