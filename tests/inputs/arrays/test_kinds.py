"""Kinds of arrays: tensors, host memory of other libraries, records."""

from __future__ import annotations

import sys
import types
from typing import Any

import numpy as np
import pytest

from tonari.inputs import (
    as_rows,
    kind_of,
    like,
)


class _Device(str):
    """Prints as "cuda:1" and has the type "cuda"."""

    __slots__ = ()

    @property
    def type(self) -> str:
        return self.split(":")[0]


class _Tensor:
    """The attributes of a torch tensor that the checks of inputs read."""

    layout, is_nested = "torch.strided", False

    def __init__(self, array: Any, dtype: str, device: str = "cpu") -> None:
        self._array, self.dtype, self.device = array, f"torch.{dtype}", _Device(device)

    def detach(self) -> _Tensor:
        return self

    def resolve_neg(self) -> _Tensor:
        return self

    def numpy(self) -> Any:
        return self._array


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch) -> Any:
    module = types.ModuleType("torch")
    module.Tensor = _Tensor  # type: ignore[attr-defined]
    module.from_numpy = lambda array: _Tensor(array, array.dtype.name)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "torch", module)
    return module


def test_tensors(torch: Any) -> None:
    x = np.ones((3, 2), np.float32)
    tensor = _Tensor(x, "float32")
    assert kind_of(tensor) == "torch"
    assert kind_of(x) == "numpy"
    assert np.shares_memory(as_rows(tensor, "points"), x)
    back = like("torch", x)
    assert isinstance(back, torch.Tensor)
    assert np.shares_memory(back.numpy(), x)
    with pytest.raises(ValueError, match=r"points: is on cuda:1, expected host memory; use .cpu\(\)"):
        as_rows(_Tensor(x, "float32", "cuda:1"), "points")
    with pytest.raises(ValueError, match=r"points: is on mps:0, expected host memory or a CUDA device; use .cpu\(\)"):
        as_rows(_Tensor(x, "float32", "mps:0"), "points")
    with pytest.raises(TypeError, match=r"float8_e5m2 is not supported.*\.to\(torch.float32\)"):
        as_rows(_Tensor(None, "float8_e5m2"), "points")


class _HostArray:
    """An array in host memory of a library with DLPack, like an array of JAX on a machine without a GPU."""

    def __init__(self, array: Any) -> None:
        self._array, self.dtype, self.shape = array, array.dtype, array.shape

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return self._array


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_host_memory_of_other_libraries_is_read_as_numpy(dtype: str) -> None:
    x = np.ones((3, 2), dtype)
    assert np.shares_memory(as_rows(_HostArray(x), "points"), x)
    assert kind_of(_HostArray(x)) == "numpy"


def test_records_are_named() -> None:
    with pytest.raises(TypeError, match="points: a record is not supported"):
        as_rows(np.zeros((2, 2), [("a", "f4")]), "points")


def test_torch_is_not_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    x = np.ones((3, 2), np.float32)
    assert kind_of(x) == kind_of([[1.0]]) == "numpy"
    assert like("numpy", x) is x
    as_rows(x, "points")
    assert "torch" not in sys.modules
