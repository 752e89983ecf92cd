"""Square roots and floors as GPU instructions, with the same bits as Triton's own functions.

Triton's functions call libdevice, a library of 470 kB. Linking it to a kernel takes 80 ms, during which Triton holds
the interpreter's lock and no other kernel can be translated (cuda/compiling/compile.py). libdevice itself only calls
intrinsic functions of LLVM, which are called directly here. Triton's interpreter does not have them, and calls NumPy.
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
    """Return the square root, correctly rounded in float64 and approximate in float32."""
    if _COMPILED:
        y = _sqrt(x)
    else:
        y = tl.sqrt(x)
    return y


@triton.jit
def rsqrt(x):
    """Return the approximate inverse of the square root of a float32 number."""
    tl.static_assert(x.dtype == tl.float32)
    if _COMPILED:
        y = _rsqrt(x)
    else:
        y = tl.rsqrt(x)
    return y


@triton.jit
def floor(x):
    """Return the largest whole number <= x, in float64 or float32; a subnormal float32 may count as 0."""
    if _COMPILED:
        y = _floor(x)
    else:
        y = tl.floor(x)
    return y
