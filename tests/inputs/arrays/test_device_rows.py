"""Rows on a device, and results that are returned in the caller's library and on the caller's device."""

from __future__ import annotations

import sys
import types
from typing import Any

import numpy as np
import pytest

from tests.helpers.devices import HAS_TORCH, needs_torch
from tests.helpers.on_device import OnDevice
from tonari import inputs
from tonari.inputs import Side, hand_back, side_of, to_host

if HAS_TORCH:
    import torch


@pytest.mark.parametrize("library", ["cupy", "jax"])
def test_arrays_of_other_libraries(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Results are converted by the library's own from_dlpack, with a torch tensor in between."""
    torch = types.ModuleType("torch")
    torch.Tensor = _Tensor  # type: ignore[attr-defined]
    torch.from_dlpack = lambda x: _Tensor(x.rows)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "torch", torch)
    theirs = types.ModuleType(library)
    theirs.ndarray = theirs.Array = OnDevice  # type: ignore[attr-defined]
    theirs.from_dlpack = lambda tensor: ("theirs", tensor)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, library, theirs)
    monkeypatch.setitem(sys.modules, f"{library}.dlpack", theirs)
    x = OnDevice(number=3)
    side = side_of(x, "queries")
    assert side == Side(library, "cuda:3")  # type: ignore[arg-type]
    assert hand_back(_Tensor(x.rows), side) == ("theirs", ("cuda:3", x.rows))
    assert np.shares_memory(to_host(x).numpy(), x.rows)
    with pytest.raises(ValueError, match=r"points: is on cuda:3, expected host memory; use (\.get\(\)|numpy\.asarray)"):
        inputs.as_rows(x, "points")


class _Tensor:
    """A tensor that records the devices to which it is moved."""

    def __init__(self, rows: Any) -> None:
        self.rows, self.device = rows, types.SimpleNamespace(type="cpu")

    def to(self, place: str) -> Any:
        return place, self.rows

    def cpu(self) -> _Tensor:
        return self

    def numpy(self) -> Any:
        return self.rows


def test_an_unknown_library_on_cuda_gets_tensors() -> None:
    assert side_of(OnDevice(number=1), "queries") == Side("torch", "cuda:1")


@needs_torch
def test_results_go_back_to_the_host() -> None:
    part = np.arange(6, dtype=np.int32).reshape(2, 3)
    assert hand_back(part, Side("numpy", None)) is part
    assert np.shares_memory(hand_back(torch.from_numpy(part), Side("numpy", None)), part)
    assert np.shares_memory(hand_back(part, Side("torch", None)).numpy(), part)
    assert side_of(torch.zeros(2), "x") == Side("torch", None)
    assert to_host(part) is part


@needs_torch
@pytest.mark.parametrize("dtype", inputs.ACCEPTED_NAMES)
def test_good_rows_are_not_copied(dtype: str) -> None:
    x = torch.ones((6, 3), dtype=getattr(torch, dtype))
    for good in (x, x[::2], x[:, 1:], x[:1].expand(4, 3)):
        rows = inputs.as_device_rows(good, "points")
        assert rows.data_ptr() == good.data_ptr()
        assert rows.stride() == good.stride()


@needs_torch
def test_gradients_stay_behind() -> None:
    x = torch.ones((4, 3), requires_grad=True)
    rows = inputs.as_device_rows(x, "points")
    assert not rows.requires_grad
    assert rows.data_ptr() == x.data_ptr()


@needs_torch
def test_other_layouts_give_the_same_rows() -> None:
    x = torch.arange(24, dtype=torch.float32).reshape(6, 4)
    imaginary = torch.complex(x, -x).conj().imag  # a tensor whose memory contains the negated values
    assert imaginary.is_neg()
    for other in (x.t(), x[:, ::2], x[:, 1:2], x[:1].t(), imaginary):
        rows = inputs.as_device_rows(other, "points")
        assert rows.stride(1) == 1
        assert not rows.is_neg()
        assert torch.equal(rows, other)


@needs_torch
@pytest.mark.parametrize(
    ("x", "error", "message"),
    [
        (
            lambda: torch.zeros((2, 2), dtype=torch.float8_e5m2),
            TypeError,
            r"float8_e5m2 is not supported.*\.to\(torch.float32",
        ),
        (
            lambda: torch.tensor([[1, 2], [3, -(2**24) - 1]]),
            ValueError,
            "points: row 1 has the int64 number -16777217 in column 1",
        ),
        (lambda: torch.zeros((2, 2), dtype=torch.bool), TypeError, "bool is not supported"),
        (lambda: torch.zeros(5), ValueError, r"got \(5,\); use .reshape\(1, -1\)"),
        (lambda: torch.zeros((2, 3, 4)), ValueError, r"got \(2, 3, 4\); use .reshape\(2, -1\)"),
        (lambda: torch.zeros(()), ValueError, r"expected shape \(n, d\), got \(\)"),
        (lambda: torch.zeros((0, 4)), ValueError, r"shape \(0, 4\) is empty"),
        (lambda: torch.zeros((4, 0)), ValueError, r"shape \(4, 0\) is empty"),
        (lambda: torch.eye(3).to_sparse(), TypeError, r"sparse input .*to_dense"),
    ],
)
def test_refuses(x: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        inputs.as_device_rows(x(), "points")


@needs_torch
def test_arrays_that_torch_cannot_read() -> None:
    with pytest.raises(TypeError, match="points: torch cannot read it through DLPack: "):
        inputs.as_device_rows(OnDevice(), "points")


@needs_torch
def test_what_another_library_calls_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "from_dlpack", lambda x: torch.zeros((2, 2), dtype=torch.bfloat16))
    assert inputs.as_device_rows(OnDevice(), "points").dtype == torch.bfloat16
    monkeypatch.setattr(torch, "from_dlpack", lambda x: torch.zeros((2, 2), dtype=torch.float8_e5m2))
    with pytest.raises(TypeError, match=r"float8_e5m2 is not supported, .*try .astype\('float32'\)"):
        inputs.as_device_rows(OnDevice(), "points")
