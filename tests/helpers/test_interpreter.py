"""The faster interpreter replaces the same functions, and refuses the same shapes, as the original one."""

from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path

import numpy as np
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

    @triton.jit
    def _outer(x_ptr, M: tl.constexpr, N: tl.constexpr):
        at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)
        tl.store(x_ptr + at, tl.sum(at, 1)[:, None] - at)

    @triton.jit
    def _sum(x_ptr, M: tl.constexpr, N: tl.constexpr):
        tl.store(x_ptr, tl.sum(tl.arange(0, M) + tl.arange(0, N), 0))


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
    for _ in range(2):  # the second time, what is replaced is known
        scope = interpreter._patch_lang(_kernel.fn)
        try:
            assert builtins() == {}
        finally:
            scope.restore()
        assert builtins() == before


def test_a_function_of_another_language_changes_nothing_for_later_kernels(tmp_path: Path) -> None:
    """A kernel whose module has only `tl` calls a function whose module also has `core`, before any other kernel."""
    hastened = """
import sys
import torch, triton
from tests.helpers import interpreter
interpreter.hasten()
sys.path.insert(0, {folder!r})
import other
from tests.helpers import test_interpreter as here
x = torch.arange(8)
for kernel in (other.kernel, here._kernel, other.kernel):
    kernel[(1,)](x, 8)
print(x.tolist())
"""
    (tmp_path / "other.py").write_text("""
import triton
import triton.language as tl
from tests.helpers.test_interpreter import _twice

@triton.jit
def kernel(x_ptr, N: tl.constexpr):
    at = tl.arange(0, N)
    tl.store(x_ptr + at, _twice(tl.load(x_ptr + at)) + tl.sum(tl.arange(0, N), 0))
""")
    code = hastened.format(folder=str(tmp_path))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    x = np.arange(8)
    for kernel in range(3):
        x = np.maximum(2 * x, 5) if kernel == 1 else 2 * x + 28
    assert (done.stdout, done.stderr) == (f"{x.tolist()}\n", "")


def test_functions_that_kernels_call_are_interpreted() -> None:
    x = torch.arange(8)
    for _ in range(2):
        _kernel[(1,)](x, 8)
    assert x.tolist() == [10, 10, 10, 12, 16, 20, 24, 28]


@pytest.mark.parametrize("shape", [(2, 4), (4, 2), (1, 8), (8, 1)])
def test_shapes_meet(shape: tuple[int, int]) -> None:
    x = torch.full(shape, -1)
    for _ in range(2):  # the second time, shapes are cached
        _outer[(1,)](x, *shape)
        at = torch.arange(8).reshape(shape)
        assert torch.equal(x, at.sum(1, keepdim=True) - at)


@pytest.mark.parametrize(("M", "N", "message"), [(4, 8, "incompatible dimensions"), (3, 3, "power of 2")])
def test_shapes_that_triton_refuses(M: int, N: int, message: str) -> None:
    for _ in range(2):
        with pytest.raises(Exception, match=message):
            _sum[(1,)](torch.zeros(1, dtype=torch.int32), M, N)


@pytest.mark.parametrize("name", ["_get_np_dtype", "_patch_builtin", "_patch_lang"])
def test_triton_is_as_it_was_when_this_was_written(name: str) -> None:
    assert callable(getattr(interpreter, name))
