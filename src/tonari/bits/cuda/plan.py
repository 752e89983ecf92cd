"""The plan of a search among rows of bits on CUDA."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from tonari.bits import tuning
from tonari.bits.cuda.memory import BitNeeds, BitSizes, whole_tiles
from tonari.bits.plan import OVERRIDES_ON_CUDA, refusal
from tonari.core.errors import BudgetExceeded, Unsupported
from tonari.core.plan import Plan
from tonari.core.problem import Problem
from tonari.costs.model import arrival_seconds, bits_seconds
from tonari.cuda.memory import available
from tonari.inputs.overrides import check_overrides


@dataclass(frozen=True, kw_only=True)
class BitsCudaPlan(Plan):
    """The plan of a search among rows of bits on CUDA.

    Attributes
    ----------
    n, m, d, k : int
        Points, queries, bytes of a row, neighbours.
    dtype, metric, method : str
        "uint8", the name of the metric, and "bits".
    device : str
        "cuda".
    devices : tuple of str
        "cuda:0" and so on. Several devices share the queries, and each has all points.
    isa, threads
        "" and 0.
    query_block, point_slab : int
        The number of queries and points whose values are in memory together, for the selection of the nearest points.
    streamed : bool
        Whether points stay in host memory, and are copied slab by slab for every block of queries.
    packed_bytes, copied_bytes, working_bytes, output_bytes : int
        Memory per device beyond the input: points that are copied to the device and stay there; rows copied during a
        search; unpacked rows and values; results.
    prepare_seconds : float
        Expected duration of copying the points to the device, if they stay there; 0 for points that are on the device
        already.
    seconds : float
        Expected duration of the search, including copies from host memory.
    """

    query_block: int
    point_slab: int
    streamed: bool
    prepare_seconds: float


def plan_bits_on_cuda(
    problem: Problem, *, free_bytes: int | None = None, prepared_by: BitsCudaPlan | None = None, **overrides: Any
) -> BitsCudaPlan:
    """Plan a search among rows of bits on CUDA; see :func:`tonari.plan`.

    Parameters
    ----------
    free_bytes : int, optional
        Available memory per device. Default: the free memory.
    prepared_by : BitsCudaPlan, optional
        The plan by which the points have been prepared, if they have; their memory then counts as available.
    **overrides
        Fields listed in :data:`OVERRIDES_ON_CUDA`.

    Raises
    ------
    Unsupported
        The metric does not compare bits, or the rows are not bits.
    BudgetExceeded
        The memory is too small for one query, one point and the results.

    Examples
    --------
    >>> from tonari.metrics.problem import make_problem
    >>> asked = make_problem(10**6, 10**4, 128, 10, dtype="uint8", metric="hamming", devices=("cuda:0",))
    >>> made = plan_bits_on_cuda(asked, free_bytes=10**11)
    >>> made.total_bytes < 10**11, made.streamed
    (True, False)
    """
    why_not = refusal(problem)
    if why_not is not None:
        raise Unsupported(why_not)
    check_overrides(overrides, OVERRIDES_ON_CUDA)
    several = len(problem.devices) > 1  # with several devices, some need copies even of rows that are on a device
    needs = BitNeeds(
        n=problem.n,
        m=-(-problem.m // len(problem.devices)),
        d=problem.d,
        k=problem.k,
        points_come=problem.host_points or several,
        queries_come=problem.host_queries or several,
        results=0 if problem.host_queries else problem.m,
    )
    budget = available(problem.devices, free_bytes)
    if prepared_by is not None:
        budget += prepared_by.packed_bytes
    budget = budget if problem.memory is None else min(budget, problem.memory)
    streams = (False, True) if problem.host_points else (False,)
    if prepared_by is not None:
        streams = (prepared_by.streamed,)
    copying = arrival_seconds(problem)
    sizes = _fitting(needs, budget, streams, overrides, copying)
    seconds = bits_seconds(problem.n, needs.m, problem.d, "cuda", prepared=False) + _after_copies(needs, sizes, copying)
    return BitsCudaPlan(
        **problem.plan_fields(),
        method="bits",
        isa="",
        threads=0,
        query_block=sizes.block,
        point_slab=sizes.slab,
        streamed=sizes.streamed,
        packed_bytes=needs.packed_bytes(sizes),
        copied_bytes=needs.copied_bytes(sizes),
        working_bytes=needs.working_bytes(sizes),
        output_bytes=needs.output_bytes(sizes),
        prepare_seconds=copying if needs.points_come and not sizes.streamed and prepared_by is None else 0.0,
        seconds=seconds,
    )


def _after_copies(needs: BitNeeds, sizes: BitSizes, copying: float) -> float:
    """Return the seconds that kernel launches and copies of points take, in addition to the comparisons."""
    blocks = -(-needs.m // sizes.block)
    return blocks * -(-needs.n // sizes.slab) * tuning.STEP_SECONDS + (blocks if sizes.streamed else 1) * copying


def _fitting(
    needs: BitNeeds, budget: int, streams: tuple[bool, ...], overrides: dict[str, Any], copying: float
) -> BitSizes:
    """Return the largest sizes that fit the budget, with resident or streamed points, whichever is faster.

    `streams` has the allowed values of :attr:`BitSizes.streamed`.
    """
    fitting: list[BitSizes] = []
    least: BitSizes | None = None
    for streamed in streams:
        for sizes in _choices(needs, streamed, overrides):
            if needs.total_bytes(sizes) <= budget:
                fitting.append(sizes)
                break
            if least is None or needs.total_bytes(sizes) < needs.total_bytes(least):
                least = sizes
    if fitting:
        return min(fitting, key=lambda sizes: _after_copies(needs, sizes, copying))
    assert least is not None
    raise BudgetExceeded(
        f"a memory budget of {budget} bytes cannot hold a search of these rows of bits: allow at least "
        f"{needs.total_bytes(least)}, or search the queries in smaller batches",
        least=needs.total_bytes(least),
    )


def _choices(needs: BitNeeds, streamed: bool, overrides: dict[str, Any]) -> Iterator[BitSizes]:
    """Yield the sizes to try, in descending order; a size that the caller sets stays fixed."""
    wish = needs.wish()
    block = min(int(overrides.get("query_block", wish.block)), needs.m)
    slab = min(int(overrides.get("point_slab", wish.slab)), needs.n)
    sizes = BitSizes(block, slab, streamed)
    yield sizes
    while True:
        halves_slab = sizes.slab > 1 and (sizes.slab > tuning.WIDER * sizes.block or sizes.block == 1)
        if "point_slab" not in overrides and (halves_slab or ("query_block" in overrides and sizes.slab > 1)):
            sizes = replace(sizes, slab=whole_tiles(-(-sizes.slab // 2)))
        elif "query_block" not in overrides and sizes.block > 1:
            sizes = replace(sizes, block=-(-sizes.block // 2))
        else:
            break
        yield sizes
