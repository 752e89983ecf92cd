"""Rows of bits, packed or one bool for each."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.helpers.devices import needs_torch
from tonari.inputs.arrays.bits import as_bits

BOOLS = np.random.default_rng(0).random((5, 24)) < 0.5
PACKED = np.packbits(BOOLS, axis=1)


@pytest.mark.parametrize("view", [lambda x: x, lambda x: x[::2], lambda x: np.asfortranarray(x), lambda x: x.tolist()])
def test_bools_are_packed_as_numpy_packs_them(view: Any) -> None:
    given = view(BOOLS)
    packed = as_bits(given, "points")
    np.testing.assert_array_equal(packed, np.packbits(np.asarray(given), axis=1))
    assert packed.flags.c_contiguous


def test_packed_rows_are_not_copied() -> None:
    assert np.shares_memory(as_bits(PACKED, "points"), PACKED)


@needs_torch
def test_tensors_are_packed_alike() -> None:
    import torch

    np.testing.assert_array_equal(as_bits(torch.from_numpy(BOOLS), "points"), PACKED)
    np.testing.assert_array_equal(as_bits(torch.from_numpy(PACKED), "points"), PACKED)


@pytest.mark.parametrize(
    ("x", "error", "message"),
    [
        (np.ones((2, 12), bool), ValueError, "bool rows of 12 columns do not fill whole bytes; use numpy.packbits"),
        (np.ones((2, 8), np.int8), TypeError, "x: int8 are no bits, expected packed uint8 or bool"),
        (np.ones(8, bool), ValueError, "x: expected shape"),
        (np.ones((2, 0), bool), ValueError, "x: "),
        (np.ones((0, 2), np.uint8), ValueError, "x: "),
    ],
)
def test_what_is_no_bits_is_refused(x: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        as_bits(x, "x")
