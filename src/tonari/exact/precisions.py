"""Choose the precisions of the screen on the CPU, in the order of their use, among the kernels of this machine."""

from __future__ import annotations

from typing import Any

from tonari.core import _native
from tonari.core.problem import Problem
from tonari.core.process.caches import cached
from tonari.costs.model import begins_in_float32, exact_in_int8
from tonari.exact.memory import ELEMENT_BYTES
from tonari.metrics import get_metric

_INT8_DIMENSIONS = 1 << 17  # with fewer columns, sums of products of bytes (each at most 2**14) stay below 2**31


def choose_precisions(problem: Problem, isa: str, asked: Any = None, *, contracted: bool = False) -> tuple[str, ...]:
    """Return the precisions of the screen on an instruction set, in the order of their use.

    Parameters
    ----------
    problem : Problem
    isa : str
    asked : tuple of str, optional
        The precisions that the caller requests.
    contracted : bool
        Whether the screen compares a contraction of the rows.

    Raises
    ------
    ValueError
        The precisions are not in ascending order, or there is no kernel for one of them.
    """
    metric, d = problem.metric, problem.d
    usual = usual_precisions(metric, isa, problem.dtype, d, contracted=contracted)
    precisions = usual if asked is None else _checked_precisions(asked)
    if "int8" in precisions and d >= _INT8_DIMENSIONS:
        raise ValueError(
            f"int8 sums overflow from {_INT8_DIMENSIONS} dimensions on, got d={d}; leave int8 out of precisions"
        )
    available = _kernels()
    for precision in precisions:
        if kernel_name(metric, precision, isa) not in available:
            raise ValueError(f"no {precision} kernel for {metric} on {isa}; available: {', '.join(sorted(available))}")
    return precisions


@cached()
def kernel_name(metric: str, precision: str, isa: str) -> str:
    """Return the name of the kernel for a metric on an instruction set.

    AMX has no float32, so the last precision on AMX uses the AVX-512 kernel.
    """
    operation = "inner" if get_metric(metric).form == "gemm" else metric
    return f"{operation}/{precision}/{'avx512' if isa == 'amx' and precision == 'float32' else isa}"


def _checked_precisions(precisions: Any) -> tuple[str, ...]:
    levels = tuple(precisions) if isinstance(precisions, list | tuple) else ()
    if not levels or list(levels) != [p for p in ELEMENT_BYTES if p in levels]:
        known = ", ".join(ELEMENT_BYTES)
        raise ValueError(
            f"precisions={precisions!r}: expected a tuple in the order {known}, such as ('int8', 'float32')"
        )
    return levels


@cached()
def _kernels() -> frozenset[str]:
    """Return the names of the kernels that this machine can run."""
    return frozenset(_native.kernel_names())


def usual_precisions(metric: str, isa: str, dtype: str, d: int, *, contracted: bool) -> tuple[str, ...]:
    """Return the precisions of the screen that are fastest for most data, in the order of their use."""
    available = _kernels()
    levels = [p for p in ("int8", "bfloat16", "float32") if kernel_name(metric, p, isa) in available]
    if not contracted and begins_in_float32(metric, isa, dtype, d):
        return ("float32",)
    # The first coordinates of contracted rows are the largest, and determine an int8 step that is too coarse for all.
    if (contracted or d >= _INT8_DIMENSIONS) and "int8" in levels:
        levels.remove("int8")
    if isa == "amx" and "int8" in levels and not exact_in_int8(metric, dtype):
        # On AMX, int8 is hardly faster than bfloat16 and leaves more survivors, which take most of the time. Rows of
        # integers are the exception: int8 represents them exactly and leaves no additional survivors.
        levels.remove("int8")
    return tuple(levels)
