"""Precision levels: their order, and a kernel for each."""

from __future__ import annotations

import pytest

import tonari
from tonari.core import _native
from tonari.exact import precisions
from tonari.exact.precisions import kernel_name, usual_precisions
from tonari.metrics import METRICS


@pytest.mark.parametrize(
    ("isa", "dtype", "metric", "few"),
    [
        ("avx2", "float32", "euclidean", True),
        ("avx2", "uint8", "euclidean", False),  # exact in int8
        ("avx2", "uint8", "cosine", True),  # after division by their norms they are not
        ("avx512", "float32", "euclidean", True),
        ("amx", "float32", "euclidean", True),
        ("neon", "float32", "euclidean", False),
    ],
)
def test_few_columns_begin_in_float32_where_products_are_a_small_part(
    isa: str, dtype: str, metric: str, few: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    all_levels = ("bfloat16", "float32") if isa == "amx" else ("int8", "float32")
    names = frozenset(kernel_name(metric, precision, isa) for precision in all_levels)
    monkeypatch.setattr(precisions, "_kernels", lambda: names)
    levels = {d: usual_precisions(metric, isa, dtype, d, contracted=False) for d in (2, 12, 13)}
    assert levels[2] == levels[12] == (("float32",) if few else all_levels)
    assert levels[13] == all_levels


@pytest.mark.parametrize("metric", METRICS)
def test_every_rung_has_a_kernel(metric: str) -> None:
    for isa in _native.supported_isas():
        plan = tonari.plan(100, 10, 4, 2, metric=metric, isa=isa)
        assert plan.precisions[-1] == "float32"
        assert {plan.kernels[precision] for precision in plan.precisions} <= set(_native.kernel_names())
