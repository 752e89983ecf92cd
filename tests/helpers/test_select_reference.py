"""The reference of k-selection, compared with plain Python."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tests.helpers import select_checks
from tests.helpers.devices import HAS_TORCH, needs_torch
from tests.helpers.select_checks import make, some_lengths
from tests.helpers.select_reference import select_k_reference


def _plain(row: list[Any], k: int, *, largest: bool) -> list[int]:
    """Return the indices of the k smallest by Python's sort of (is NaN, value, index)."""
    keys = [(math.isnan(x), 0 if math.isnan(x) else -x if largest else x, at) for at, x in enumerate(row)]
    return [at for *_, at in sorted(keys)[:k]]


@pytest.mark.parametrize("maker", select_checks.MAKERS)
@pytest.mark.parametrize("dtype", select_checks.DTYPES)
def test_reference_is_a_sort_of_pairs(maker: str, dtype: str) -> None:
    if dtype == "bfloat16" and not HAS_TORCH:
        pytest.skip("torch is not installed")
    rows, n, k = 9, 23, 10
    values, lengths = make(maker, rows, n, dtype), some_lengths(rows, n)
    if dtype in select_checks.FLOATS:
        values[3, 5] = values[1, 22] = values[4, :] = float("nan")
    plain = values.tolist()
    for largest in (False, True):
        found = select_k_reference(values, k, largest=largest, lengths=lengths, nan="last")
        worst = float("-inf" if largest else "inf")
        if dtype not in select_checks.FLOATS:
            limits = np.iinfo(dtype)
            worst = limits.min if largest else limits.max
        for row, length in enumerate(lengths):
            best = _plain(plain[row][:length], k, largest=largest)
            assert found.indices[row].tolist() == best + [-1] * (k - len(best))
            expected = [plain[row][at] for at in best] + [worst] * (k - len(best))
            assert str(found.values[row].tolist()) == str(expected)  # here -0.0 differs from 0.0, and nan equals nan
        assert str(found.values.dtype).endswith(dtype)


def test_reference_refuses_nan_within_the_lengths_only() -> None:
    values = np.ones((3, 4), np.float32)
    values[1:, 3] = np.nan
    with pytest.raises(ValueError, match="row 1 has NaN"):
        select_k_reference(values, 1)
    with pytest.raises(ValueError, match="row 2 has NaN"):
        select_k_reference(values, 1, lengths=[4, 3, 4])
    assert select_k_reference(values, 1, lengths=[4, 3, 3]).indices.tolist() == [[0], [0], [0]]


def test_reference_has_no_model_of_the_rest() -> None:
    with pytest.raises(ValueError, match="there is no model of method 'radix'; expected auto, insertion, heap"):
        select_k_reference([[1.0]], 1, method="radix")


@needs_torch
def test_reference_keeps_to_the_cpu() -> None:
    with pytest.raises(ValueError, match="is on meta"):
        select_k_reference(select_checks.torch.ones((2, 2), device="meta"), 1)
