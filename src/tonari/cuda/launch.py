"""Launching Triton kernels without paying for their binding at every call.

Triton looks at every argument of a launch to find the compiled variant: 30 to 60 µs for a kernel of twenty arguments,
as long as some selections take. Here the variant is remembered under just what Triton specialises on, and is given the
tensors' addresses, which are looked at anyway: of a tensor it would ask the driver whether the device can reach it.
"""

from __future__ import annotations

import threading
from typing import Any

# (kernel, device, constants, options, what is special about each argument) -> (compiled, constants in order)
_compiled: dict[Any, tuple[Any, tuple[Any, ...]]] = {}
_compiling = threading.Lock()  # devices have a thread each


def launch(
    kernel: Any,
    programs: int,
    *arguments: Any,
    constants: dict[str, Any],
    warps: int,
    registers: int | None = None,
    stages: int | None = None,
    fused: bool = True,
) -> None:
    """Run `programs` programs of a kernel whose constants follow its other arguments.

    Parameters
    ----------
    kernel : triton.JITFunction
    arguments : tensors, tensor descriptors, ints or None, in the kernel's order; the first is no number
    constants : its tl.constexpr arguments by name
    warps : int
    registers : int, optional
        Most registers per thread.
    stages : int, optional
        Depth of the loads' pipeline; default: Triton's own.
    fused : bool
        Whether a * b + c may be rounded once; the reference's bits need twice.
    """
    if programs == 0:
        return
    if not hasattr(kernel, "device_caches"):  # Triton's interpreter
        kernel[(programs,)](*arguments, **constants, num_warps=warps)
        return
    first = arguments[0]
    device = getattr(first, "base", first).device.index
    special, given = _bound(arguments)
    key = (kernel.fn, device, *constants.values(), warps, registers, stages, fused, *special)
    known = _compiled.get(key)
    if known is None:
        options = {"maxnreg": registers, "num_stages": stages, "enable_fp_fusion": None if fused else False}
        chosen = {name: option for name, option in options.items() if option is not None}
        with _compiling:
            compiled = kernel[(programs,)](*arguments, **constants, num_warps=warps, **chosen)
        order = tuple(constants[name] for name in kernel.arg_names[len(arguments) :])
        _compiled[key] = compiled, order
        return
    compiled, order = known
    compiled[(programs, 1, 1)](*given, *order)


def _bound(arguments: tuple[Any, ...]) -> tuple[list[Any], list[Any]]:
    """What Triton compiles a variant for, and what the compiled variant is given; one entry each per argument.

    A variant depends on types, alignments and blocks of descriptors, and on 1, 16 or large among numbers.
    """
    special: list[Any] = []
    given = list(arguments)
    for at, argument in enumerate(arguments):
        if argument is None:
            special.append(None)
        elif isinstance(argument, int):
            special.append((argument == 1) + 2 * (argument % 16 == 0) + 4 * (-(2**31) <= argument < 2**31))
        elif hasattr(argument, "block_shape"):
            special.append((argument.base.dtype, *argument.block_shape))
        else:
            given[at] = address = argument.data_ptr()
            special.append((argument.dtype, address % 16 == 0))
    return special, given
