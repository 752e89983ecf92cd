"""Triton's interpreter replaces the same functions as without our help, and gives them back."""

from __future__ import annotations

import inspect

import pytest

from tests.helpers.devices import HAS_TORCH, interpreted

if HAS_TORCH:
    import torch
    import triton
    import triton.language as tl
    from triton.language import core
    from triton.runtime import interpreter

    @triton.jit
    def _twice(x):
        return x + x

    @triton.jit
    def _kernel(x_ptr, N: tl.constexpr):
        at = tl.arange(0, N)
        tl.store(x_ptr + at, tl.maximum(_twice(tl.load(x_ptr + at)), 5))


pytestmark = interpreted


def builtins() -> dict[tuple[str, str], object]:
    packages = {"tl": tl, "tensor": tl.tensor, "math": tl.math, "descriptor": core.tensor_descriptor_base}
    return {
        (place, name): member
        for place, package in packages.items()
        for name, member in inspect.getmembers(package)
        if core.is_builtin(member)
    }


def test_all_builtins_are_replaced_and_given_back() -> None:
    before = builtins()
    assert ("tl", "arange") in before
    scope = interpreter._patch_lang(_kernel.fn)
    try:
        assert builtins() == {}
    finally:
        scope.restore()
    assert builtins() == before


def test_functions_that_kernels_call_are_interpreted() -> None:
    x = torch.arange(8)
    for _ in range(2):
        _kernel[(1,)](x, 8)
    assert x.tolist() == [10, 10, 10, 12, 16, 20, 24, 28]


@pytest.mark.parametrize("name", ["_patch_builtin", "_patch_attr", "_patch_lang"])
def test_triton_is_as_it_was_when_this_was_written(name: str) -> None:
    assert callable(getattr(interpreter, name))
