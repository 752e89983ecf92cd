"""The plan of a search among rows of bits on the CPU, and the reasons for refusing a search on any device."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tonari.bits import tuning
from tonari.core.errors import BudgetExceeded, Unsupported
from tonari.core.plan import Override, Plan
from tonari.core.problem import Problem
from tonari.core.process.isa import without_amx
from tonari.core.process.workers import default_threads
from tonari.core.results.neighbors import index_dtype
from tonari.costs.model import bits_seconds
from tonari.inputs.overrides import check_overrides
from tonari.metrics import BIT_METRICS

# LANES: points in a packed group. WORD: bytes in a word. Both are as in native/bits/pack.hpp.
LANES, WORD = 16, 4
# Largest size of a row in bytes, and largest number of points, as in native/bits/value.hpp.
MOST_BYTES, MOST_POINTS = 1 << 21, (1 << 33) - 1

OVERRIDES = {
    "query_block": Override("queries per task"),
    "isa": Override("instruction set: generic, avx2, avx512 or neon", "word"),
}
OVERRIDES_ON_CUDA = {
    "query_block": Override("queries at once"),
    "point_slab": Override("points at once"),
}


@dataclass(frozen=True, kw_only=True)
class BitsPlan(Plan):
    """The plan of a search among rows of bits on the CPU.

    Attributes
    ----------
    n, m, d, k : int
        Points, queries, bytes of a row, neighbours.
    dtype, metric, method : str
        "uint8", the name of the metric, and "bits".
    device, devices
        "cpu" and an empty tuple.
    isa : str
        Instruction set: generic, avx2, avx512 or neon; AVX-512 without VPOPCNTDQ runs the kernel of AVX2.
    query_block : int
        Queries per task; a task reads every point once.
    parts : int
        The number of parts of the points; more than one if queries are too few to keep all threads busy.
    threads : int
        CPU threads.
    packed_bytes, copied_bytes, working_bytes, output_bytes : int
        Memory beyond the input, for packed points, copied rows (always 0), the lists of running blocks, and results.
    prepare_seconds : float
        Expected duration of packing; 0 if the points are packed already.
    seconds : float
        Expected duration of the search, including packing.
    """

    query_block: int
    parts: int
    prepare_seconds: float


def plan_bits(problem: Problem, *, prepared: bool = False, **overrides: Any) -> BitsPlan:
    """Plan a search among rows of bits on the CPU; see :func:`tonari.plan`.

    Parameters
    ----------
    prepared : bool
        Whether the points are packed already.
    **overrides
        Fields listed in :data:`OVERRIDES`.

    Raises
    ------
    Unsupported
        The metric does not compare bits, or the rows are not bits.
    BudgetExceeded
        The budget is too small for the packed points, one query's list per thread, and the results.

    Examples
    --------
    >>> from tonari.metrics.problem import make_problem
    >>> made = plan_bits(make_problem(10**6, 10**4, 128, 10, dtype="uint8", metric="hamming", threads=2))
    >>> made.query_block, made.parts
    (64, 1)
    """
    why_not = refusal(problem)
    if why_not is not None:
        raise Unsupported(why_not)
    check_overrides(overrides, OVERRIDES)
    isa = without_amx(overrides.get("isa"))
    work = bits_seconds(problem.n, problem.m, problem.d, isa, prepared=prepared)
    threads = problem.threads or default_threads(work)
    block = overrides.get("query_block") or _block(problem.m, threads)
    packing = bits_seconds(problem.n, 0, problem.d, isa, prepared=prepared)
    made = _made(problem, isa, threads, min(block, problem.m), work, packing)
    if problem.memory is not None and made.total_bytes > problem.memory and "query_block" not in overrides:
        while made.total_bytes > problem.memory and made.query_block > 1:
            made = _made(problem, isa, threads, made.query_block // 2, work, packing)
    if problem.memory is not None and made.total_bytes > problem.memory:
        raise BudgetExceeded(
            f"a memory budget of {problem.memory} bytes cannot hold these rows of bits, packed, and their search: "
            f"allow at least {made.total_bytes}",
            least=made.total_bytes,
        )
    return made


def refusal(problem: Problem) -> str | None:
    """Return the reason why rows cannot be compared as bits, or None if they can.

    >>> from tonari.metrics.problem import make_problem
    >>> refusal(make_problem(1000, 10, 8, 10, dtype="uint8", metric="euclidean"))
    "method='bits' supports hamming, jaccard, not euclidean; use method='auto'"
    """
    if problem.metric not in BIT_METRICS:
        return f"method='bits' supports {', '.join(BIT_METRICS)}, not {problem.metric}; use method='auto'"
    for dtype in (problem.dtype, problem.query_dtype):
        if dtype != "uint8":
            return f"metric={problem.metric!r} compares bits, packed as uint8, got {dtype}; use dtype='uint8'"
    for name, value, most in (("d", problem.d, MOST_BYTES), ("n", problem.n, MOST_POINTS)):
        if value > most:
            return f"{name}={value}: method='bits' takes {name} up to {most}"
    return None


def _block(m: int, threads: int) -> int:
    """Return the number of queries per task.

    Few queries form a single block, so that each point is read once; the points are then divided among the threads.
    """
    even = m > tuning.QUERY_BLOCK and m >= tuning.LEAST_BLOCK * threads
    return min(tuning.QUERY_BLOCK, -(-m // threads) if even else m)


def _made(problem: Problem, isa: str, threads: int, block: int, work: float, packing: float) -> BitsPlan:
    n, m, d, k = problem.n, problem.m, problem.d, problem.k
    groups, words = -(-n // LANES), -(-d // WORD)
    blocks = -(-m // block)
    parts = min(groups, -(-threads // blocks))
    running = min(threads, blocks * parts) if parts == 1 else parts * blocks
    # Bytes of a query in a task: its neighbour list, whose capacity grows by doubling, its words, and its limit.
    row = 2 * 8 * (2 * k + tuning.SPARE_PAIRS) + words * WORD + 64
    return BitsPlan(
        **problem.plan_fields(),
        method="bits",
        isa=isa,
        threads=threads,
        query_block=block,
        parts=parts,
        packed_bytes=groups * LANES * (words + 1) * WORD,
        copied_bytes=0,
        working_bytes=running * block * row,
        output_bytes=m * k * (4 + index_dtype(n).itemsize),
        prepare_seconds=packing / threads,
        seconds=work / threads,
    )
