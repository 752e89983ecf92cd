"""Estimate how long kernels take to compile, so that the slowest can be compiled first."""

from __future__ import annotations

import functools
from typing import Any

from tonari.cuda import tuning
from tonari.cuda.compiling.rehearsal import Call

# LOOPS_FROM: minimum number of pairs of a sorting network that has loops. UNROLLED: unrolled steps of such a network.
LOOPS_FROM, UNROLLED = 64, 5


def effort(call: Call) -> int:
    """Estimate the effort of compiling a kernel, as the length of its code after unrolling.

    Triton inlines calls and unrolls loops over constants. The longest of these loops run over the TILES of a screen,
    the FOLDS of a code, and the steps of a sorting network (of SIZE pairs, of SLOTS candidates, or of runs of K in a
    TILE, which are then merged). Two kinds of lines stand for many instructions: a matrix product, and a line that
    processes the A runs of RUN values of a thread. A kernel with a METRIC contains code for all metrics, but only that
    of one metric is compiled.
    """
    size = call.constants.get("SIZE")
    size = size if isinstance(size, int) else 1
    steps = _steps(size) if size < LOOPS_FROM else UNROLLED
    slots: int = call.constants.get("SLOTS", 1)
    if (run := call.constants.get("K")) is not None:
        # One of these merges adds the best of earlier tiles.
        merges = (call.constants.get("TILE", run) // run).bit_length()
        steps += _steps(run) + merges * run.bit_length()
    times: int = call.constants.get("TILES", 1) * call.constants.get("FOLDS", 1)
    if "RUN" in call.constants:
        times *= max(1, call.constants["A"] * call.constants["RUN"] // tuning.VALUES_OF_THREAD)
    own = _instructions(call.kernel.fn) // (tuning.METRICS if "METRIC" in call.constants else 1)
    return own * times + tuning.INSTRUCTIONS_OF_STEP * (steps + _steps(slots))


def _steps(size: int) -> int:
    """Return the number of steps of a bitonic network that sorts `size` pairs."""
    bits = size.bit_length() - 1
    return bits * (bits + 1) // 2


def _instructions(function: Any, inside: frozenset[Any] = frozenset()) -> int:
    """Return the length of a kernel's bytecode, together with that of all Triton functions that it calls.

    A function counts once for each function that calls it, even if it is called there several times. Recursion counts
    once.
    """
    own, called = _own_instructions(function)
    inside |= {function}
    return own + sum(_instructions(one, inside) for one in called if one not in inside)


@functools.cache
def _own_instructions(function: Any) -> tuple[int, list[Any]]:
    """Return the weighted length of a function's own bytecode, and the Triton functions that it calls."""
    code = function.__code__
    used = map(function.__globals__.get, code.co_names)
    product = tuning.INSTRUCTIONS_OF_PRODUCT * ("dot" in code.co_names)
    return len(code.co_code) // 2 + product, [one.fn for one in used if hasattr(one, "arg_names")]
