"""Estimate the seconds that a plan takes: the one cost model of `auto`, `tonari plan` and progress bars."""

from __future__ import annotations

import math
from typing import Any

from tonari import inputs
from tonari.core._native import supported_isas
from tonari.core.plan import Plan
from tonari.core.problem import Problem
from tonari.core.process.caches import cached
from tonari.costs import tuning
from tonari.costs.formulas import BruteCosts, MeanVisits, TreeCosts
from tonari.costs.rates import (
    BITS,
    BRUTE,
    CARD,
    DESCENT,
    DIRECT,
    ESTIMATED,
    LISTED_BITS,
    LOOK_BYTE,
    READ_RATE,
    SCREEN_START,
    SCREEN_START_UNPACKED,
    SHARED,
    TREE,
)
from tonari.metrics import get_metric


def bits_seconds(n: int, m: int, d: int, isa: str, *, prepared: bool) -> float:
    """Return the expected seconds of one core or device for packing and comparing rows of bits, each of d bytes.

    `isa` is an instruction set of the CPU, or "cuda".
    """
    rates = BITS[isa]
    packing = 0.0 if prepared else rates.byte * n * d
    return packing + n * m * (rates.pair + rates.pair_byte * d)


def listed_bits_seconds(m: int, pairs: int, d: int, isa: str) -> float:
    """Return the expected seconds of one core for `pairs` pairs of m queries and listed points, each of d bytes."""
    costs = LISTED_BITS["generic" if isa in ("generic", "neon") else "avx2"]
    return m * costs.query + pairs * (costs.pair + costs.value * d)


def brute_seconds(problem: Problem, isa: str, workers: int, *, shared: bool = False) -> float:
    """Return the expected seconds of a search by brute force, including packing of the points.

    Parameters
    ----------
    isa : str
        Instruction set; "" on CUDA.
    workers : int
        Number of cores or devices.
    shared : bool
        Whether each product of two rows is used for both of them, as in a self-join on the CPU.
    """
    costs = _brute(problem, isa)
    seconds = costs.seconds(problem.n, problem.m, problem.d, problem.k, workers)
    return seconds * SHARED if shared else seconds


def brute_pair_seconds(d: int) -> float:
    """Return the seconds that brute force on CUDA takes per pair of a query and a point, for a matrix product."""
    costs = BRUTE["cuda", "gemm"]
    return costs.pair + costs.pair_value * d


def brute_work(problem: Problem, isa: str, *, read_bytes: int, prepared: bool) -> float:
    """Return the seconds that one thread would take for the part of brute force on the CPU that threads can share.

    Parameters
    ----------
    read_bytes : int
        Bytes of packed points that are read for all queries together. Reading them takes a minimum of time, which
        matters if there are few queries.
    prepared : bool
        Whether the points are packed already.
    """
    costs, n, d = _brute(problem, isa), problem.n, problem.d
    answering = max(costs.answering(n, problem.m, d, problem.k), read_bytes / READ_RATE)
    return answering if prepared else answering + costs.packing(n, d)


def direct_seconds(problem: Problem, isa: str) -> float:
    """Return the expected seconds of one core for a search that computes all exact values, without a screen."""
    # native/exact/direct.cpp first estimates sums of squares if the rows are float32.
    squares = get_metric(problem.metric).squares and problem.dtype == problem.query_dtype == "float32"
    costs = ESTIMATED if squares and 2 * problem.k <= problem.n else DIRECT
    return costs[isa].seconds(problem.n, problem.m, problem.d, problem.k)


def listed_seconds(m: int, pairs: int, d: int, isa: str) -> float:
    """Return the expected seconds of one core for exact values of m queries and their listed points.

    `pairs` is the number of these values.
    """
    costs = DIRECT[isa]
    return m * costs.query + pairs * (costs.pair + costs.value * d)


def screening_seconds(problem: Problem, isa: str, *, prepared: bool) -> float:
    """Return the expected seconds of one core for a search with a low-precision screen.

    The time for reading packed points from memory is not included.
    """
    start = SCREEN_START if prepared else SCREEN_START_UNPACKED
    return start + brute_work(problem, isa, read_bytes=0, prepared=prepared)


def packing_seconds(problem: Problem, isa: str, points: int) -> float:
    """Return the expected seconds of one core for packing a number of points."""
    return _brute(problem, isa).packing(points, problem.d)


def arrival_seconds(problem: Problem) -> float:
    """Return the seconds that every method spends on its input.

    This is the time to check values on the CPU, or to copy rows to CUDA.
    """
    points = problem.n * problem.d * inputs.dtype_of(problem.dtype).itemsize
    queries = 0 if problem.self_join else problem.m * problem.d * inputs.dtype_of(problem.query_dtype).itemsize
    if not problem.devices:
        return LOOK_BYTE * points
    from_host = points * problem.host_points + queries * problem.host_queries
    return copying_seconds(from_host, points + queries - from_host, len(problem.devices))


def copying_seconds(from_host: int, from_device: int, devices: int) -> float:
    """Return the seconds for copying rows to CUDA devices: rows on one of the devices are copied to all others.

    Parameters
    ----------
    from_host, from_device : int
        Bytes of rows in host memory, and of rows on one of the devices.
    devices : int
    """
    link = CARD.link if devices == 1 else CARD.link_of_several
    return from_host / link + from_device * (devices - 1) / devices / CARD.peer


def tree_work(problem: Problem, isa: str, height: int, held_bytes: int, *, prepared: bool) -> float:
    """Return the seconds that one thread would take for the part of a tree search on the CPU that threads can share.

    Parameters
    ----------
    height : int
        The height of the tree.
    held_bytes : int
        Bytes per value that the tree stores.
    prepared : bool
        Whether the tree is built already.
    """
    n, m, d, k = problem.n, problem.m, problem.d, problem.k
    costs, seen = TREE[_cores(isa)], expected_visits(n, d, k, height)
    searching = costs.search(m, d, k, seen, 1, double=held_bytes == 8, tree_bytes=n * d * held_bytes)
    return searching if prepared else searching + costs.build(n, d, height, 1)


def build_seconds(plan: Any) -> float:
    """Return the expected seconds of building the tree of a plan."""
    return _tree(plan).build(plan.n, plan.d, plan.height, max(1, plan.threads))


def tree_seconds(plan: Any, m: int, seen: MeanVisits) -> float:
    """Return the expected seconds of m queries in a tree that is already built; `seen` has their mean visits."""
    workers, double = plan.threads or len(plan.devices), plan.held == "float64"
    return _tree(plan).search(m, plan.d, plan.k, seen, workers, double=double, tree_bytes=plan.packed_bytes)


def expected_visits(n: int, d: int, k: int, height: int) -> MeanVisits:
    """Return the expected visits of a query (leaves, nodes and points) in a tree of points that are uniform in a cube.

    A small ball that contains k points touches ((k / leaf)^(1/d) + 1)^d cells of `leaf` points (Friedman, Bentley and
    Finkel, An algorithm for finding best matches in logarithmic expected time, ACM TOMS 1977, section 4). In many
    dimensions the ball extends beyond the cube, so fewer cells are touched: the squared width of the ball is subtracted
    from the number of cells in each dimension. For 20,000 to 2 million uniform points in up to 15 dimensions, the
    result differs from the measured visits by at most a third; for k = n it is exact.
    """
    leaves = 1 << height
    size = n / leaves
    # width of a cube that contains k of n points that are uniform in the unit cube
    width = min(1.0, k / n) ** (1.0 / d)
    across = (k / size) ** (1.0 / d) + 1.0 - width**2
    # In many dimensions the power would overflow float64; it is far larger than the number of leaves.
    touched = float(leaves) if d * math.log2(across) > height + 1 else min(float(leaves), across**d)
    return MeanVisits(touched, touched / 4 + height / 4, touched * size)


def all_visits(n: int, height: int) -> MeanVisits:
    """Return the visits of a query that visits every leaf of a tree whose nodes have up to 16 children."""
    leaves = 1 << height
    return MeanVisits(leaves, math.ceil(leaves / 15), n)


def _brute(problem: Problem, isa: str) -> BruteCosts:
    form = get_metric(problem.metric).form
    few = form == "gemm" and begins_in_float32(problem.metric, isa, problem.dtype, problem.d)
    return BRUTE[isa or "cuda", "few" if few else form]


def begins_in_float32(metric: str, isa: str, dtype: str, d: int) -> bool:
    """Return whether a plan on the CPU screens in float32 first, because rows have too few columns for int8."""
    return d <= tuning.FEW_COLUMNS.get(isa, 0) and not exact_in_int8(metric, dtype)


def exact_in_int8(metric: str, dtype: str) -> bool:
    """Return whether an int8 screen represents the rows without rounding.

    It does if they are integers and the metric does not normalise them.
    """
    return inputs.dtype_of(dtype).kind in "iu" and not get_metric(metric).angular


def _tree(plan: Plan) -> TreeCosts:
    return TREE[_cores(plan.isa) if plan.isa else "cuda"]


@cached()
def _cores(isa: str) -> str:
    """Return the key in TREE for an instruction set.

    CPUs with AMX have other constants than other CPUs with AVX-512.
    """
    return "amx" if isa == "avx512" and "amx" in supported_isas() else isa


def least_build_seconds(plan: Plan) -> float:
    """Return the seconds that building the smallest tree takes on the device of a plan."""
    return _tree(plan).start


def descent_seconds(plan: Any) -> float:
    """Return the expected seconds of a whole k-NN graph by NN-Descent."""
    return DESCENT[plan.device, plan.update].seconds(plan.n, plan.d, plan.list_size, max(1, plan.threads))
