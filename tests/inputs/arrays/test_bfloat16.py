"""bfloat16 in NumPy: values, names, and bytes with which NumPy does not compute."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from tonari.inputs import (
    BFLOAT16,
    as_floats,
    dtype_name,
    dtype_of,
    held,
    name_of_dtype,
)


def test_all_bfloat16_have_their_values() -> None:
    x = np.arange(2**16, dtype=np.uint16).view("bfloat16").reshape(256, 256)
    for rows in (x, x[::2, 1::3], x.T):
        assert as_floats(held(rows)).tobytes() == rows.astype(np.float32).tobytes()
    assert as_floats(x[0, :1].astype(np.float16)).dtype == np.float16


def test_names_of_bfloat16() -> None:
    for dtype in ("bfloat16", ml_dtypes.bfloat16, np.dtype(ml_dtypes.bfloat16), BFLOAT16):
        assert dtype_of(dtype) == BFLOAT16
    for dtype in ("float16", "V2", [("b", "V2")], ml_dtypes.float8_e5m2, np.uint16):
        assert dtype_of(dtype) == np.dtype(dtype) != BFLOAT16
    for x in (np.zeros(3, ml_dtypes.bfloat16), np.zeros(3, BFLOAT16)):
        assert name_of_dtype(x) == dtype_name(x.dtype) == "bfloat16"


def test_numpy_does_not_compute_with_bytes_of_bfloat16() -> None:
    rows = held(np.ones((4, 3), "bfloat16"))
    for compute in (np.isfinite, np.abs, np.square, lambda x: x + x, lambda x: x.astype(np.float64), np.max):
        with pytest.raises((TypeError, ValueError)):
            compute(rows)


@pytest.mark.process
def test_bfloat16_imports_nothing() -> None:
    """Works without ml_dtypes and torch, and does not import them if they are installed."""
    code = """
import sys
import numpy as np, tonari
from tonari.inputs import BFLOAT16
plan = tonari.plan(4, 2, 3, 1, dtype="bfloat16")
rows = np.array([[0x3F80, 0, 0], [0, 0x4040, 0], [0, 0, 0xC000], [0x7F7F, 0, 0]], np.uint16).view(BFLOAT16)
print(plan.dtype, tonari.search(rows[:2], rows, 1).indices.ravel().tolist())
print(sorted({"ml_dtypes", "torch", "jax"} & set(sys.modules)))
"""
    source = str(Path(sys.modules["tonari"].__file__).parents[1])
    child = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONPATH": source},
        capture_output=True,
        text=True,
        check=True,
    )
    assert child.stdout.splitlines() == ["bfloat16 [0, 1]", "[]"]
