"""Costs of a search by codes: bytes that do not depend on the length of rows, and the time to copy all rows once."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from tests.helpers.devices import needs_torch
from tonari.costs.rates import CARD
from tonari.exact.cuda import tuning
from tonari.exact.cuda.coded_memory import CodesNeeds, in_codes
from tonari.exact.cuda.memory import CudaNeeds, Slabs

pytestmark = needs_torch
SIZES: dict[str, Any] = {"n": 10**8, "m": 2048, "d": 128, "k": 10, "itemsize": 1, "query_itemsize": 1}
FACTS: dict[str, Any] = {"value_itemsize": 4, "gemm": True, "self_join": False, "host_points": True}
WAY: dict[str, Any] = {"host_queries": True, "precisions": ("float16", "values"), "group": 32, "width": 16}


def needs(**choices: Any) -> tuple[CodesNeeds, Slabs]:
    made = in_codes(CudaNeeds(**SIZES | FACTS | WAY | choices))[-1]
    return made, Slabs("codes", 2**21, made.m)


def test_codes_have_their_own_precision_columns_and_width() -> None:
    made, _ = needs()
    assert (made.precisions, made.form_dim, made.width) == (("int8", "values"), 61, tuning.CODED_WIDTH)
    assert [made.form_dim for made in in_codes(CudaNeeds(**SIZES | FACTS | WAY))] == [123, 61]
    assert [made.form_dim for made in in_codes(CudaNeeds(**SIZES | FACTS | WAY | {"form_dim": 32}))] == [32]
    assert needs(width=5)[0].width == 5
    assert needs(d=20)[0].form_dim == 19


def test_memory_of_many_points() -> None:
    made, slabs = needs()
    assert made.packed_bytes(slabs, "int8") == 64 * 10**8
    wide = needs(d=768, itemsize=4)[0]
    assert wide.packed_bytes(slabs, "int8") == made.packed_bytes(slabs, "int8")
    assert made.copied_bytes(slabs) == made.output_bytes(slabs) == 0


@pytest.mark.parametrize("choices", [{}, {"n": 10**5}, {"m": 1}, {"m": 10**6}, {"d": 768, "itemsize": 4}], ids=str)
def test_batches_fit_the_budget(choices: dict[str, Any]) -> None:
    made, slabs = needs(**choices)
    least = made.total_bytes(slabs, 1)
    assert made.batch(slabs, least - 1) == 0
    for budget in (least, least + 10**8, 2 * least, 70 * 10**9):
        batch = made.batch(slabs, budget)
        assert 1 <= batch <= tuning.CODED_BATCH
        assert made.total_bytes(slabs, batch) <= budget
    assert made.batch(slabs, 70 * 10**9) % 128 == 0


def test_points_are_copied_once_whatever_the_queries() -> None:
    few, slabs = needs(m=1)
    many = dataclasses.replace(few, m=10**6)
    once = 10**8 * 128 / CARD.link
    assert few.copying_seconds(slabs) == pytest.approx(once, rel=1e-3)
    read = many.copying_seconds(slabs) - once
    assert read == pytest.approx(10**6 * (148 * 128 + 128) / CARD.link, rel=1e-2)
