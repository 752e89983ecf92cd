"""Launching Triton kernels without paying for their binding at every call.

Triton looks at every argument of a launch to find the compiled variant: 30 to 60 µs for a kernel of twenty arguments,
as long as some selections take. Here the variant is remembered under just what Triton specialises on, and is given the
tensors' addresses, which are looked at anyway: of a tensor it would ask the driver whether the device can reach it.

Arguments come by name, in a mapping: a dict of 15 names takes 0.4 µs longer than as many positional arguments, keywords
that a function gathers 2 µs.
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Mapping
from operator import itemgetter
from typing import Any

_Picker = Callable[[Mapping[str, Any]], tuple[Any, ...]]

# A kernel's Python function (a kernel itself hashes its source) -> its arguments and its constants, in its own order
_pickers: dict[Any, tuple[_Picker, _Picker]] = {}
# (kernel, device, constants in the kernel's order, options, what is special about each argument) -> compiled
_compiled: dict[Any, Any] = {}
_compiling = threading.Lock()  # devices have a thread each


def launch(
    kernel: Any,
    programs: int,
    arguments: Mapping[str, Any],
    *,
    constants: Mapping[str, Any],
    warps: int,
    registers: int | None = None,
    stages: int | None = None,
    fused: bool = True,
) -> None:
    """Run `programs` programs of a kernel.

    Parameters
    ----------
    kernel : triton.JITFunction
        Its constants follow its other arguments, the first of which is no number.
    programs : int
    arguments : tensors, tensor descriptors, ints or None, by the kernel's own names
    constants : its tl.constexpr arguments, by name
    warps : int
    registers : int, optional
        Most registers per thread.
    stages : int, optional
        Depth of the loads' pipeline; default: Triton's own.
    fused : bool
        Whether a * b + c may be rounded once; the reference's bits need twice.

    Raises
    ------
    TypeError
        For a name that the kernel does not have, and for one that is missing.
    """
    function = kernel.fn
    pickers = _pickers.get(function)
    if pickers is None:
        pickers = _pickers[function] = _pickers_of(kernel)
    pick_arguments, pick_constants = pickers
    try:
        ordered, chosen = pick_arguments(arguments), pick_constants(constants)
    except KeyError:
        raise _mismatch(kernel, arguments, constants) from None
    if len(ordered) != len(arguments) or len(chosen) != len(constants):
        raise _mismatch(kernel, arguments, constants)
    if programs == 0:
        return
    if not hasattr(kernel, "device_caches"):  # Triton's interpreter
        kernel[(programs,)](**arguments, **constants, num_warps=warps)
        return
    first: Any = ordered[0]
    device = getattr(first, "base", first).device.index
    special, given = _bound(ordered)
    key = (function, device, chosen, warps, registers, stages, fused, *special)
    compiled = _compiled.get(key)
    if compiled is None:
        options = {"maxnreg": registers, "num_stages": stages, "enable_fp_fusion": None if fused else False}
        asked = {name: option for name, option in options.items() if option is not None}
        with _compiling:
            _compiled[key] = kernel[(programs,)](**arguments, **constants, num_warps=warps, **asked)
        return
    compiled[(programs, 1, 1)](*given, *chosen)


def _names_of(kernel: Any) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What a kernel calls its arguments and its constants."""
    notes = inspect.get_annotations(kernel.fn)
    constants = tuple(name for name in kernel.arg_names if "constexpr" in str(notes.get(name)))
    arguments = tuple(name for name in kernel.arg_names if name not in constants)
    if arguments + constants != tuple(kernel.arg_names):
        raise TypeError(f"{kernel.fn.__name__}: its constants {constants} have to follow its other arguments")
    return arguments, constants


def _pickers_of(kernel: Any) -> tuple[_Picker, _Picker]:
    arguments, constants = _names_of(kernel)
    return _picker(arguments), _picker(constants)


def _picker(names: tuple[str, ...]) -> _Picker:
    """A function that takes values out of a mapping in the order of their names; KeyError where one is missing."""
    if len(names) > 1:
        return itemgetter(*names)
    return lambda named: tuple(named[name] for name in names)


def _mismatch(kernel: Any, arguments: Mapping[str, Any], constants: Mapping[str, Any]) -> TypeError:
    """The error for names that are not the kernel's."""
    expected = dict(zip(("argument", "constant"), _names_of(kernel), strict=True))
    found = []
    for kind, given in (("argument", arguments), ("constant", constants)):
        found += [f"no {kind} is called {name!r}" for name in given if name not in expected[kind]]
        found += [f"{kind} {name!r} is missing" for name in expected[kind] if name not in given]
    takes = "; ".join(f"{kind}s {', '.join(names)}" for kind, names in expected.items())
    return TypeError(f"{kernel.fn.__name__}: {', '.join(found)}; expected {takes}")


def _bound(arguments: tuple[Any, ...]) -> tuple[list[Any], list[Any]]:
    """What Triton compiles a variant for, and what the compiled variant is given, each in the order of the arguments.

    A variant depends on types, alignments and blocks of descriptors, and on 1, 16 or large among numbers.
    """
    special: list[Any] = []
    note = special.append
    given = list(arguments)
    for at, argument in enumerate(arguments):
        if isinstance(argument, int):
            if argument & 15:
                note(1 if argument == 1 else 0 if -(2**31) <= argument < 2**31 else 2)
            else:
                note(16 if -(2**31) <= argument < 2**31 else 32)
        elif argument is None:
            note(None)
        elif hasattr(argument, "data_ptr"):
            given[at] = address = argument.data_ptr()
            note((argument.dtype, "unaligned") if address & 15 else argument.dtype)
        else:
            note((argument.base.dtype, *argument.block_shape))
    return special, given
