"""Rows of bits, packed or with one bool for each bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.helpers.devices import needs_torch
from tonari.inputs.arrays.bits import as_bits, bool_columns, same_bits

BOOLS = np.random.default_rng(0).random((5, 24)) < 0.5
PACKED = np.packbits(BOOLS, axis=1)


@pytest.mark.parametrize("view", [lambda x: x, lambda x: x[::2], lambda x: np.asfortranarray(x), lambda x: x.tolist()])
def test_bools_are_packed_as_numpy_packs_them(view: Any) -> None:
    given = view(BOOLS)
    packed = as_bits(given, "points")
    np.testing.assert_array_equal(packed, np.packbits(np.asarray(given), axis=1))
    assert packed.flags.c_contiguous


@pytest.mark.parametrize("columns", [1, 7, 9, 15, 17, 23])
def test_rows_that_do_not_fill_bytes_are_padded_with_zeros(columns: int) -> None:
    given = BOOLS[:, :columns]
    packed = as_bits(given, "points")
    np.testing.assert_array_equal(packed, np.packbits(given, axis=1))
    assert np.unpackbits(packed, axis=1)[:, columns:].sum() == 0


@pytest.mark.parametrize(
    ("ours", "theirs", "fits"),
    [(12, 12, True), (None, None, True), (16, None, True), (None, 8, True), (16, 8, True), (12, 13, False),
     (12, None, False), (None, 12, False), (12, 16, False)],
)  # fmt: skip
def test_rows_of_one_number_of_bits(ours: int | None, theirs: int | None, fits: bool) -> None:
    if fits:
        same_bits(ours, theirs)
        return
    with pytest.raises(ValueError, match=r"queries are .*, the points .*: both must have the same number of bits"):
        same_bits(ours, theirs)


def test_packed_rows_are_not_copied() -> None:
    assert np.shares_memory(as_bits(PACKED, "points"), PACKED)


@needs_torch
def test_tensors_are_packed_alike() -> None:
    import torch

    np.testing.assert_array_equal(as_bits(torch.from_numpy(BOOLS), "points"), PACKED)
    np.testing.assert_array_equal(as_bits(torch.from_numpy(PACKED), "points"), PACKED)
    assert (bool_columns(torch.from_numpy(BOOLS)), bool_columns(BOOLS.tolist()), bool_columns(PACKED)) == (24, 24, None)


@pytest.mark.parametrize(
    ("x", "error", "message"),
    [
        (np.ones((2, 8), np.int8), TypeError, "x: int8 are no bits, expected packed uint8 or bool"),
        (np.ones(8, bool), ValueError, "x: expected shape"),
        (np.ones((2, 0), bool), ValueError, "x: "),
        (np.ones((0, 2), np.uint8), ValueError, "x: "),
    ],
)
def test_what_is_no_bits_is_refused(x: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        as_bits(x, "x")
