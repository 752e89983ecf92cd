"""Launch Triton kernels without the cost of Triton's argument binding on every call.

Triton inspects every argument of a launch to find the compiled variant. For a kernel with twenty arguments this takes
30 to 60 µs, as long as some selections run. This module caches compiled variants; the key consists of exactly the
properties that Triton specialises on. A kernel receives the addresses of tensors, because Triton would ask the driver
for each tensor whether the device can access it.

A variant that is not cached is loaded or compiled, possibly together with the other kernels of the search (ahead.py).
Launches on torch's device "meta" are only recorded (rehearsal.py). Neither case makes launches of cached variants
slower.

Arguments are passed by name in a mapping. A dict of 15 names takes 0.4 µs longer than 15 positional arguments, keyword
arguments would take 2 µs longer.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from operator import itemgetter
from typing import Any

from tonari.cuda.compiling.ahead import prepare_for
from tonari.cuda.compiling.compile import compiling
from tonari.cuda.compiling.keys import hash_in_order
from tonari.cuda.compiling.rehearsal import Call, note

_Picker = Callable[[Mapping[str, Any]], tuple[Any, ...]]

# Maps the Python function of a kernel to functions that pick its arguments and its constants, and to the positions of
# its plain arguments: integers and addresses whose values no variant depends on. (The key is not the kernel, because
# Triton would compute its hash from its source.)
_pickers: dict[Any, tuple[_Picker, _Picker, frozenset[int]]] = {}
# Options of a launch with their defaults, in the order of the cache key; the first option has no default.
_OPTIONS = {"warps": None, "registers": None, "stages": None, "fused": True}
# The options of triton.jit that name plain arguments, whose values no variant depends on: integers, then tensors.
_PLAIN = ("do_not_specialize", "do_not_specialize_on_alignment")
# Maps (device, kernel, constants in the kernel's order, options, specialised properties of arguments) to the variant.
_compiled: dict[Any, Any] = {}


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
    """Launch `programs` programs of a kernel on the device of its first argument.

    Parameters
    ----------
    kernel : triton.JITFunction
        Its constants must follow its other arguments, and its first argument must be a tensor or tensor descriptor.
    programs : int
    arguments : mapping of names to tensors, tensor descriptors, ints or None
        The arguments by the names of the kernel's parameters.
    constants : mapping of names to values
        The kernel's tl.constexpr parameters.
    warps : int
        Warps per program.
    registers : int, optional
        Maximum registers per thread.
    stages : int, optional
        Pipeline stages for loads. Default: Triton's.
    fused : bool
        Whether a * b + c may be fused, with a single rounding. Results that equal the reference bit by bit need two
        roundings.

    Raises
    ------
    TypeError
        An argument or constant is missing, or is unknown to the kernel.
    """
    function = kernel.fn
    pickers = _pickers.get(function)
    if pickers is None:
        pickers = _pickers[function] = _pickers_of(kernel)
    pick_arguments, pick_constants, plain = pickers
    try:
        ordered, chosen = pick_arguments(arguments), pick_constants(constants)
    except KeyError:
        raise _mismatch(kernel, arguments, constants) from None
    if len(ordered) != len(arguments) or len(chosen) != len(constants):
        raise _mismatch(kernel, arguments, constants)
    if programs == 0:
        return
    first: Any = ordered[0]
    device = getattr(first, "base", first).device
    if not hasattr(kernel, "device_caches") and device.type != "meta":  # Triton's interpreter
        kernel[(programs,)](**arguments, **constants, num_warps=warps)
        return
    special, given = _bound(ordered, plain)
    key = (device.index, function, chosen, warps, registers, stages, fused, *special)
    compiled = _compiled.get(key)
    if compiled is not None:
        compiled[(programs, 1, 1)](*given, *chosen)
        return
    # Fusion is always passed, because its default differs between versions of Triton. Without checks for overflow,
    # which Triton would drop anyway unless it debugs, a tenth less code is translated from Python.
    options = {
        "num_warps": warps,
        "maxnreg": registers,
        "num_stages": stages,
        "enable_fp_fusion": fused,
        "sanitize_overflow": False,
    }
    asked = {name: option for name, option in options.items() if option is not None}
    call = Call(kernel, arguments, constants, asked, key[1:])
    if device.type == "meta":
        note(call)
        return
    with compiling:
        prepare_for(call, device)
        hash_in_order(call)
        _compiled[key] = kernel[(programs,)](**arguments, **constants, **asked)


class Launch:
    """A launch of a kernel that can be repeated; see :func:`launch` for the parameters.

    ``options`` are the keyword arguments of :func:`launch` that follow the constants, such as `warps`.

    Attributes
    ----------
    arguments : mapping of names to tensors, tensor descriptors, ints or None
    """

    def __init__(
        self, kernel: Any, programs: int, arguments: Mapping[str, Any], *, constants: Mapping[str, Any], **options: Any
    ) -> None:
        self.kernel, self.programs, self.arguments = kernel, programs, arguments
        self.constants, self.options = constants, options

    def __call__(self, **others: Any) -> None:
        """Launch, with new values for the arguments named in `others`."""
        launch(self.kernel, self.programs, {**self.arguments, **others}, constants=self.constants, **self.options)

    def repeated(self, *names: str) -> Callable[..., None]:
        """Return a function that repeats the launch with other tensors for the arguments called `names`.

        The first argument of the function is the handle of a stream of the current device; the tensors follow, in the
        order of `names`. They must have the dtypes of the original ones, and addresses divisible by 16 if the original
        addresses were. The function looks nothing up and checks nothing, because that would take longer than the launch
        itself. It must not be called by several threads at the same time.

        Raises
        ------
        KeyError
            The variant has not been launched before.
        """
        pick_arguments, pick_constants, plain = _pickers_of(self.kernel)
        ordered, chosen = pick_arguments(self.arguments), pick_constants(self.constants)
        device = ordered[0].device
        if not hasattr(self.kernel, "device_caches"):  # Triton's interpreter
            return lambda stream, *tensors: self(**dict(zip(names, tensors, strict=True)))
        special, given = _bound(ordered, plain)
        options = [self.options.get(name, usual) for name, usual in _OPTIONS.items()]
        run = _compiled[(device.index, self.kernel.fn, chosen, *options, *special)][(self.programs, 1, 1)]
        given += chosen
        place_of = {name: place for place, name in enumerate(_names_of(self.kernel)[0])}
        places = [place_of[name] for name in names]

        def again(stream: int, *tensors: Any) -> None:
            for place, tensor in zip(places, tensors, strict=True):
                given[place] = tensor.data_ptr()
            run(*given, stream=stream)

        return again


def _names_of(kernel: Any) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names of a kernel's arguments and of its constants."""
    notes = inspect.get_annotations(kernel.fn)
    constants = tuple(name for name in kernel.arg_names if "constexpr" in str(notes.get(name)))
    arguments = tuple(name for name in kernel.arg_names if name not in constants)
    if arguments + constants != tuple(kernel.arg_names):
        raise TypeError(f"{kernel.fn.__name__}: its constants {constants} have to follow its other arguments")
    return arguments, constants


def _pickers_of(kernel: Any) -> tuple[_Picker, _Picker, frozenset[int]]:
    arguments, constants = _names_of(kernel)
    given = getattr(kernel, "kwargs", vars(kernel))  # the options of triton.jit; the interpreter has them in `kwargs`
    names = {name for option in _PLAIN for name in given.get(option) or ()}
    plain = frozenset(at for at, name in enumerate(arguments) if name in names)
    return _picker(arguments), _picker(constants), plain


def _picker(names: tuple[str, ...]) -> _Picker:
    """Return a function that picks the values of `names` from a mapping, in order; KeyError if one is missing."""
    if len(names) > 1:
        return itemgetter(*names)
    return lambda named: tuple(named[name] for name in names)


def _mismatch(kernel: Any, arguments: Mapping[str, Any], constants: Mapping[str, Any]) -> TypeError:
    """Return the error for a call whose arguments or constants do not have the names that the kernel expects."""
    expected = dict(zip(("argument", "constant"), _names_of(kernel), strict=True))
    found = []
    for kind, given in (("argument", arguments), ("constant", constants)):
        found += [f"no {kind} is called {name!r}" for name in given if name not in expected[kind]]
        found += [f"{kind} {name!r} is missing" for name in expected[kind] if name not in given]
    takes = "; ".join(f"{kind}s {', '.join(names)}" for kind, names in expected.items())
    return TypeError(f"{kernel.fn.__name__}: {', '.join(found)}; expected {takes}")


def _bound(arguments: tuple[Any, ...], plain: frozenset[int]) -> tuple[list[Any], list[Any]]:
    """Return the properties of the arguments that a variant depends on, and the values to launch with, in order.

    A variant depends on the dtypes and alignments of tensors, on the block shapes of descriptors, and on three
    properties of integers: whether they equal 1, are multiples of 16, and need more than 32 bits. Of a plain argument,
    it depends only on the dtype, or on whether the integer needs more than 32 bits.
    """
    special: list[Any] = []
    note = special.append
    given = list(arguments)
    for at, argument in enumerate(arguments):
        if isinstance(argument, int):
            if at in plain:
                note(0 if -(2**31) <= argument < 2**31 else 2)
            elif argument & 15:
                note(1 if argument == 1 else 0 if -(2**31) <= argument < 2**31 else 2)
            else:
                note(16 if -(2**31) <= argument < 2**31 else 32)
        elif argument is None:
            note(None)
        elif hasattr(argument, "data_ptr"):
            given[at] = address = argument.data_ptr()
            note((argument.dtype, "unaligned") if address & 15 and at not in plain else argument.dtype)
        else:
            note((argument.base.dtype, *argument.block_shape))
    return special, given
