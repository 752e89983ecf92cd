"""The measured rates: every instruction set and device has them, and they are plausible."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from tonari.core._native import supported_isas
from tonari.costs import rates, tuning

ISAS = ("generic", "avx2", "avx512", "amx", "neon")
TABLES: dict[str, dict[Any, Any]] = {
    name: getattr(rates, name) for name in ("BRUTE", "DIRECT", "ESTIMATED", "TREE", "DESCENT", "BITS", "LISTED_BITS")
}


def test_every_instruction_set_has_rates() -> None:
    assert set(supported_isas()) <= set(ISAS)
    for isa in ISAS:
        assert {(isa, form) in rates.BRUTE for form in ("gemm", "elementwise")} == {True}
        assert ((isa, "few") in rates.BRUTE) is (isa in tuning.FEW_COLUMNS)
        for name in ("DIRECT", "ESTIMATED", "TREE"):
            assert isa in TABLES[name]
        assert (isa, "float32") in rates.PRODUCTS
    assert {("cuda", form) in rates.BRUTE for form in ("gemm", "elementwise")} == {True}
    assert "cuda" in rates.TREE
    assert "cuda" in rates.BITS


@pytest.mark.parametrize("name", TABLES)
def test_rates_are_seconds(name: str) -> None:
    for key, costs in TABLES[name].items():
        values = costs._asdict() if hasattr(costs, "_asdict") else dataclasses.asdict(costs)
        for each, value in values.items():
            assert 0 <= value < 1 or each in ("double", "ordered", "coarse", "blurred", "columns"), (key, each)


def test_wider_registers_are_never_slower_and_narrower_ones_never_faster() -> None:
    for form in ("gemm", "elementwise"):
        times = [rates.BRUTE[isa, form].pair_value for isa in ("amx", "avx512", "avx2", "generic")]
        assert times == sorted(times)
        assert rates.BRUTE["neon", form].pair_value == 2 * rates.BRUTE["avx2", form].pair_value
    assert rates.TREE["neon"].value == 2 * rates.TREE["avx2"].value
    assert rates.TREE["neon"].query == rates.TREE["avx2"].query
