"""The device of the tested GPU code: CUDA, or Triton's interpreter (set by ``conftest.py``)."""

from __future__ import annotations

import importlib.util
from typing import Any

import pytest

HAS_TORCH = importlib.util.find_spec("torch") is not None and importlib.util.find_spec("triton") is not None
HAS_CUDA = False
if HAS_TORCH:
    import torch

    HAS_CUDA = torch.cuda.is_available()

needs_torch = pytest.mark.skipif(not HAS_TORCH, reason="torch and Triton are not installed")
on_cuda = pytest.mark.skipif(not HAS_CUDA, reason="needs a CUDA device")
interpreted = pytest.mark.skipif(not HAS_TORCH or HAS_CUDA, reason="Triton interprets where there is no CUDA device")
# A mark for tests of kernels, which run on the GPU, or without one in the interpreter.
on_device = pytest.mark.parametrize(
    "device", [pytest.param("cpu", marks=interpreted), pytest.param("cuda", marks=[pytest.mark.gpu, on_cuda])]
)


def on_gpu(test: Any) -> Any:
    """Mark a test that runs only on a GPU."""
    return pytest.mark.gpu(on_cuda(test))
