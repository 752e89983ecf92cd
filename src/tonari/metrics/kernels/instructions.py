"""Square roots and floors as the instructions of a GPU, with the bits of Triton's own functions.

Triton's functions call libdevice, a library of 470 kB. Linking it to a kernel takes 80 ms, in which Triton holds the
interpreter's lock, so no other kernel is translated (cuda/compiling/compile.py). libdevice's functions are calls of the
same intrinsic functions of LLVM. Triton's interpreter has no such functions, and calls NumPy.
"""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

_COMPILED = tl.constexpr(not triton.knobs.runtime.interpret)


@tl.core.extern
def _sqrt(x: Any, _semantic: Any = None) -> Any:
    return _call("sqrt.rn.d" if x.dtype == tl.float64 else "sqrt.approx.ftz.f", x, _semantic)


@tl.core.extern
def _rsqrt(x: Any, _semantic: Any = None) -> Any:
    return _call("rsqrt.approx.ftz.f", x, _semantic)


@tl.core.extern
def _floor(x: Any, _semantic: Any = None) -> Any:
    return _call("floor.d" if x.dtype == tl.float64 else "floor.ftz.f", x, _semantic)


def _call(intrinsic: str, x: Any, semantic: Any) -> Any:
    kinds = {(x.dtype,): (f"llvm.nvvm.{intrinsic}", x.dtype)}
    return tl.core.extern_elementwise("", "", [x], kinds, is_pure=True, _semantic=semantic)


@triton.jit
def sqrt(x):
    """Return the square root: correctly rounded for float64, approximate for float32."""
    if _COMPILED:
        y = _sqrt(x)
    else:
        y = tl.sqrt(x)
    return y


@triton.jit
def rsqrt(x):
    """Return an approximate inverse of the square root of float32."""
    tl.static_assert(x.dtype == tl.float32)
    if _COMPILED:
        y = _rsqrt(x)
    else:
        y = tl.rsqrt(x)
    return y


@triton.jit
def floor(x):
    """Return the largest whole number <= x, of float64 or float32; a subnormal float32 may be taken as 0."""
    if _COMPILED:
        y = _floor(x)
    else:
        y = tl.floor(x)
    return y
