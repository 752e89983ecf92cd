"""Matrices for k-selection, and the numbers of values in their rows."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.helpers.devices import needs_torch
from tonari.inputs import as_lengths, as_values
from tonari.inputs.arrays.selected import SELECTED

VALUES = np.arange(24, dtype=np.float32).reshape(4, 6)


def test_rows_of_any_stride_are_not_copied() -> None:
    for dtype in SELECTED:
        given = VALUES.astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)[::2]
        values, name = as_values(given, "values")
        assert name == dtype
        assert np.shares_memory(values, given)
        assert values.dtype == (np.int16 if dtype == "bfloat16" else dtype)
        assert values.tobytes() == given.tobytes()


def test_columns_byte_order_and_alignment_are_made_plain() -> None:
    held = np.zeros(VALUES.nbytes + 1, np.uint8)
    unaligned = held[1:].view(np.float32).reshape(VALUES.shape)
    unaligned[:] = VALUES
    for given in (VALUES.repeat(2, axis=1)[:, ::2], VALUES.astype(">f4"), np.asfortranarray(VALUES), unaligned):
        values, name = as_values(given, "values")
        assert name == "float32"
        assert values.strides[1] == 4
        assert values.flags.aligned
        assert values.dtype.isnative
        assert values.tolist() == VALUES.tolist()
    assert as_values(np.zeros((0, 3), np.uint8), "values")[0].shape == (0, 3)


@needs_torch
def test_tensors_of_host_memory_are_arrays_over_it() -> None:
    import torch

    given = torch.from_numpy(VALUES).requires_grad_()
    values, _ = as_values(given, "values")
    assert isinstance(values, np.ndarray)
    assert np.shares_memory(values, VALUES)
    assert as_values(torch.zeros((2, 3), dtype=torch.bfloat16), "values")[1] == "bfloat16"
    with pytest.raises(ValueError, match="values: is on meta, expected the CPU or a CUDA device"):
        as_values(torch.zeros((2, 3), device="meta"), "values")


def test_what_cannot_be_selected_from_is_refused() -> None:
    cases: list[Any] = [
        (VALUES[0], ValueError, r"expected shape \(rows, n\), got \(6,\)"),
        (VALUES[:, :0], ValueError, "has no columns"),
        (np.broadcast_to(np.uint8(0), (1, 2**31)), ValueError, "2147483648 columns, expected at most 2147483647"),
        (VALUES > 0, TypeError, r"bool is not supported, only float32.*try \.astype\(numpy.int32\)"),
        (VALUES.astype(np.int64), TypeError, r"int64 .*float64\), exact for whole numbers"),
        (VALUES.astype(np.complex64), TypeError, "complex numbers have no order"),
        (VALUES.astype(ml_dtypes.float8_e5m2), TypeError, r"float8.*\.astype\(numpy.float32\)"),
    ]
    for values, error, message in cases:
        with pytest.raises(error, match=f"^values: .*{message}"):
            as_values(values, "values")


def test_lengths_that_no_row_has_are_refused() -> None:
    cases: list[Any] = [
        ([1, 2, 3], ValueError, r"expected shape \(4,\), one number for each row, got \(3,\)"),
        ([1.0] * 4, TypeError, "expected whole numbers, got float64"),
        ([0, 6, -1, 7], ValueError, "row 2 has length -1"),
        ([0, 6, 7, -1], ValueError, "row 2 has length 7; there are 6 columns"),
    ]
    for lengths, error, message in cases:
        with pytest.raises(error, match=message):
            as_lengths(lengths, (4, 6), "lengths")


def test_lengths_are_int64_or_none() -> None:
    made = as_lengths(np.array([0, 6, 2, 3], np.uint8), (4, 6), "lengths")
    assert made is not None
    assert made.dtype == np.int64
    assert made.tolist() == [0, 6, 2, 3]
    assert as_lengths(None, (4, 6), "lengths") is None
