"""The plan of a search on CUDA: one frozen record of every choice, made by a pure function of problem and machine.

Facts about the machine are arguments, with defaults that :func:`free_memory` reads.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tonari import inputs
from tonari.core.errors import BudgetExceeded
from tonari.core.plan import Plan
from tonari.core.units import MIB
from tonari.exact.cuda.groups import GROUP_SIZES, POINT_TILE
from tonari.exact.cuda.memory import LEAST_BATCH, MOST_POINTS, GpuProblem, Slabs
from tonari.inputs.arguments import check_overrides, check_whole
from tonari.metrics import get_metric
from tonari.metrics.problem import check_problem

ROUTES = ("resident", "screened", "streamed")  # in the order in which they are tried
# Rungs of the ladder by form; the last one settles whatever is left by exact values.
RUNGS = {"gemm": ("float16", "split", "values"), "elementwise": ("float32", "values")}

SHARDS = ("points", "queries")

_OVERRIDES = {"route", "shard", "ladder", "group", "width", "query_batch", "query_slab", "point_slab"}
RESERVE = 512 * MIB  # of free memory, left alone: kernels' code, and what the allocator cannot join
_PACKED_AT_ONCE = 256 * MIB  # original rows that pass by while the copy of "screened" is made


@dataclass(frozen=True, kw_only=True)
class CudaPlan(Plan):
    """Every choice of one exact search on CUDA.

    Attributes
    ----------
    n, m, d, k : int
        Points, queries, dimensions, neighbours.
    dtype, metric, method : str
    devices : tuple of str
        "cuda:0" and so on.
    route : str
        "resident": points and queries lie on the device. "streamed": points, or queries too, come slab by slab.
        "screened": only the packed copy of the points is held, and the CPU refines what it lets through from the
        original rows in host memory.
    shard : str
        Of several devices, what each has an equal part of. "points": every query visits every part, and lists are
        merged. "queries": all points are on each device. "none" for one device.
    ladder : tuple of str
        Precisions of the screen, first to last; rows that one cannot prove climb to the next. "values", the last,
        compares exact values alone.
    group : int
        Points whose least lower bound stands for all of them: 8, 16 or 32.
    width : int
        Groups of a row that are refined at first.
    query_batch : int
        Queries whose minima are held at once.
    query_slab : int
        Queries on a device at once: m, or fewer where they are streamed, too; points then pass once per slab.
    point_slab : int
        Points on one device at once.
    packed_bytes, copied_bytes, working_bytes, output_bytes : int
        Memory of one device beyond what lies there already: packed points; original rows copied from host memory;
        everything temporary; results.
    seconds : float
        Rough expectation.
    """

    route: str
    shard: str
    ladder: tuple[str, ...]
    group: int
    width: int
    query_batch: int
    query_slab: int
    point_slab: int


def plan_on_gpu(
    n: int,
    m: int,
    d: int,
    k: int,
    *,
    dtype: npt.DTypeLike,
    metric: str,
    devices: tuple[str, ...],
    memory: int | str | None = None,
    self_join: bool = False,
    host_points: bool,
    host_queries: bool,
    query_dtype: npt.DTypeLike | None = None,
    free_bytes: int | None = None,
    **overrides: Any,
) -> CudaPlan:
    """:func:`tonari.plan` for CUDA.

    Everything stays on the device ("resident") if it fits. If it does not, points come from host memory slab by slab
    ("streamed"), and queries too if they have to; the slabs are those with the least expected time. "screened" is
    chosen where the packed copy fits, the original rows do not, and queries are so few (for an
    :class:`tonari.Index`, always) that refining on the CPU is no slower than to let all points pass once more; else
    only by name. The second rung is left out where its packed copy would not fit.

    Several devices share the points, or the queries where all points fit on each and that takes less time: then no
    list has to be merged, and no row refined more than once, but more points have to be copied.

    Parameters
    ----------
    n, m, d, k, dtype, metric, memory, self_join
        As for :func:`tonari.plan`.
    devices : tuple of str
    host_points, host_queries : bool
        Whether they lie in host memory, from where they have to be copied.
    query_dtype : dtype, optional
        Of the queries; default: that of the points.
    free_bytes : int, optional
        Memory that can be had on each device. Default: what :func:`free_memory` reads there.
    **overrides
        route, shard, ladder, group, width, query_batch, query_slab or point_slab.

    Raises
    ------
    ValueError
        For an impossible problem, override or budget, with the reason.

    Examples
    --------
    >>> made = plan_on_gpu(10**6, 10**4, 128, 10, dtype="float32", metric="euclidean", devices=("cuda:0",),
    ...                    host_points=True, host_queries=True, free_bytes=80 * 10**9)
    >>> made.route, made.ladder, made.group, made.width
    ('resident', ('float16', 'split', 'values'), 32, 16)
    """
    kind, k = check_problem(n, m, d, k, dtype=dtype, metric=metric, self_join=self_join)
    query_kind = kind if query_dtype is None else inputs.dtype_of(query_dtype)
    form = get_metric(metric).form
    asked = inputs.parse_memory(memory)
    free = free_memory(devices) if free_bytes is None else free_bytes
    budget = max(0, free - RESERVE) if asked is None else min(asked, max(0, free - RESERVE))

    several = len(devices) > 1
    _check_overrides(overrides, n, m, len(devices), form, host_points=host_points)
    wanted = k + self_join
    whole = GpuProblem(
        n=n,
        m=m,
        d=d,
        k=k,
        itemsize=kind.itemsize,
        query_itemsize=query_kind.itemsize,
        value_itemsize=8 if np.float64 in (kind, query_kind) else 4,
        gemm=form == "gemm",
        self_join=self_join,
        host_points=host_points,
        host_queries=host_queries,
        ladder=tuple(overrides.get("ladder", RUNGS[form])),
        group=GROUP_SIZES[-1],
        width=overrides.get("width", wanted + max(6, wanted // 8)),
        several=several,
        results=0 if host_queries else m,
    )
    shards = list(_shards(whole, len(devices), overrides))
    tile = min(LEAST_BATCH, overrides.get("query_batch", LEAST_BATCH))
    choices = [(shard, *_fit(problem, budget, limits)) for shard, problem, limits in shards]
    shard, problem, slabs, batch = min(
        choices, key=lambda choice: (-min(choice[3], tile), choice[1].seconds(choice[2]))
    )
    if batch == 0:
        least = min(
            made.total_bytes(at, overrides.get("query_batch", 1))
            for _, part, limits in shards
            for route in ROUTES
            for made, at in _on(route, part, limits)
        )
        where = (
            f"of {asked} bytes" if asked == budget else f"of {budget} bytes, which {' and '.join(devices)} can give,"
        )
        raise BudgetExceeded(f"a memory budget {where} cannot hold this search; allow at least {least}")
    return CudaPlan(
        n=n,
        m=m,
        d=d,
        k=k,
        dtype=inputs.dtype_name(kind),
        metric=metric,
        method="exact",
        device="cuda",
        devices=devices,
        isa="",
        threads=0,
        route=slabs.route,
        shard=shard,
        ladder=problem.ladder,
        group=problem.group,
        width=problem.refined_groups(slabs),
        query_batch=batch,
        query_slab=slabs.queries,
        point_slab=slabs.points,
        packed_bytes=problem.packed_bytes(slabs, problem.ladder[0]),
        copied_bytes=problem.copied_bytes(slabs),
        working_bytes=problem.working_bytes(slabs, batch),
        output_bytes=problem.output_bytes(slabs),
        seconds=problem.seconds(slabs),
    )


def free_memory(devices: tuple[str, ...]) -> int:
    """Bytes that can be had on each of some CUDA devices: those free there, and those that torch keeps unused."""
    import torch

    cuda = torch.cuda
    return min(
        int(cuda.mem_get_info(name)[0] + cuda.memory_reserved(name) - cuda.memory_allocated(name)) for name in devices
    )


def share(count: int, devices: int) -> int:
    """Rows of each of several devices, in whole tiles; the last has what is left, and there may be too few for all.

    >>> [share(count, 4) for count in (1000, 100)]
    [256, 100]
    """
    return count if devices == 1 else min(count, -(-count // (devices * POINT_TILE)) * POINT_TILE)


def _check_overrides(overrides: dict[str, Any], n: int, m: int, devices: int, form: str, *, host_points: bool) -> None:
    """Refuse overrides that cannot work, whatever memory there is."""
    check_overrides(overrides, _OVERRIDES)
    route, shard = overrides.get("route"), overrides.get("shard")
    if "route" in overrides and route not in ROUTES:
        raise ValueError(f"route={route!r}: expected one of {', '.join(ROUTES)}")
    if route == "screened" and not host_points:
        raise ValueError("route='screened' refines from host memory, but the points lie on a device")
    if "shard" in overrides:
        known = SHARDS if devices > 1 else ("none",)
        if shard not in known:
            raise ValueError(f"shard={shard!r}: expected one of {', '.join(known)} on {devices} devices")
        if shard == "queries" and route not in (None, "resident"):
            raise ValueError(f"shard='queries': route={route!r} does not hold all points on each device")
    n, m = (n, share(m, devices)) if shard == "queries" else (share(n, devices), m)
    if route in ("resident", "screened") and n > MOST_POINTS:
        raise ValueError(f"route={route!r}: a device takes at most {MOST_POINTS} points at once, not {n}")
    if "ladder" in overrides:
        _check_ladder(overrides["ladder"], form)
    if "group" in overrides and overrides["group"] not in GROUP_SIZES:
        raise ValueError(f"group={overrides['group']!r}: expected one of {', '.join(map(str, GROUP_SIZES))}")
    for name in ("width", "query_batch", "query_slab", "point_slab"):
        if name in overrides:
            check_whole(name, overrides[name], least=1)
    holds_all = "shard='queries'" if shard == "queries" else f"route={route!r}" if route == "resident" else None
    if "point_slab" in overrides:
        points = overrides["point_slab"]
        if points < n and points % POINT_TILE:
            raise ValueError(f"point_slab must be a multiple of {POINT_TILE}, or all {n} points, got {points}")
        if points < n and holds_all:
            raise ValueError(f"point_slab={points}: {holds_all} holds all {n} points at once")
        if min(points, n) > MOST_POINTS:
            raise ValueError(f"point_slab={points}: a device takes at most {MOST_POINTS} points at once")
    if overrides.get("query_slab", m) < m and (holds_all or route == "screened"):
        raise ValueError(f"query_slab={overrides['query_slab']}: only route='streamed' takes queries slab by slab")


def _check_ladder(ladder: Any, form: str) -> None:
    rungs = tuple(ladder) if isinstance(ladder, list | tuple) else ()
    rising = list(rungs) == [rung for rung in RUNGS[form] if rung in rungs]
    if len(rungs) < 2 or not rising or rungs[-1] != "values":
        raise ValueError(
            f"ladder={ladder!r}: expected a tuple that rises through {', '.join(RUNGS[form])} and ends there, such as "
            f"{(RUNGS[form][0], 'values')}"
        )


def _shards(
    whole: GpuProblem, devices: int, overrides: dict[str, Any]
) -> Iterator[tuple[str, GpuProblem, dict[str, Any]]]:
    """The ways to share a search out among devices: what the first of them has to do, and its overrides."""
    if devices == 1:
        yield "none", whole, overrides
        return
    asked = overrides.get("shard")
    if asked != "queries":
        yield "points", dataclasses.replace(whole, n=share(whole.n, devices), merged=True), overrides
    rows = share(whole.m, devices)
    on_each = overrides.get("route", "resident") == "resident" and whole.n <= MOST_POINTS
    unslabbed = overrides.get("point_slab", whole.n) >= whole.n and overrides.get("query_slab", rows) >= rows
    if asked == "queries" or (asked is None and on_each and unslabbed):
        yield "queries", dataclasses.replace(whole, m=rows), overrides | {"route": "resident"}


def _fit(problem: GpuProblem, budget: int, overrides: dict[str, Any]) -> tuple[GpuProblem, Slabs, int]:
    """The best choice within the budget, and its batch of queries: that of the first route which allows a batch of a
    whole tile; where none does, that with the longest batch; a batch of 0 where nothing fits.
    """
    tile = min(LEAST_BATCH, overrides.get("query_batch", LEAST_BATCH))
    bests = []
    for route in ROUTES:
        choices = [
            (made, slabs, _batch(made, slabs, budget, overrides)) for made, slabs in _on(route, problem, overrides)
        ]
        if choices:
            bests.append(max(choices, key=lambda c: (min(c[2], tile), len(c[0].ladder), -c[0].seconds(c[1]))))
            if bests[-1][2] >= tile:
                return bests[-1]
    return max(bests, key=lambda choice: choice[2])


def _batch(problem: GpuProblem, slabs: Slabs, budget: int, overrides: dict[str, Any]) -> int:
    asked = overrides.get("query_batch")
    if asked is None:
        return problem.batch(slabs, budget)
    return int(asked) if problem.total_bytes(slabs, asked) <= budget else 0


def _on(route: str, problem: GpuProblem, overrides: dict[str, Any]) -> Iterator[tuple[GpuProblem, Slabs]]:
    """What may be done on a route, each with the group that takes the least time."""
    if overrides.get("route", route) != route:
        return
    ladders = [problem.ladder]
    if "ladder" not in overrides:  # a second rung is worth its memory where the first has its own
        short = tuple(rung for rung in problem.ladder if rung != "split")
        ladders = [short] if route == "screened" else [problem.ladder, short]
    groups = [overrides["group"]] if "group" in overrides else GROUP_SIZES
    for slabs in _slabs(route, problem, overrides):
        group = min(groups, key=lambda size: dataclasses.replace(problem, group=size).row_seconds(problem.held(slabs)))
        for ladder in dict.fromkeys(ladders):
            made = dataclasses.replace(problem, ladder=ladder, group=group)
            if route == "screened" and "route" not in overrides and not _is_for_few(made, slabs):
                continue
            yield made, slabs


def _is_for_few(problem: GpuProblem, slabs: Slabs) -> bool:
    """Whether the CPU refines sooner than points that do not stay would come again."""
    return problem.host_points and problem.refine_on_cpu_seconds(slabs) <= problem.pass_seconds()


def _slabs(route: str, problem: GpuProblem, overrides: dict[str, Any]) -> Iterator[Slabs]:
    """The slabs of a route: as overridden, else all that halving gives."""
    n, m = problem.n, problem.m
    points, queries = min(n, overrides.get("point_slab", n)), min(m, overrides.get("query_slab", m))
    if route == "streamed":
        for size in [points] if "point_slab" in overrides else _halves(n):
            for rows in [queries] if "query_slab" in overrides else _halves(m):
                if size <= MOST_POINTS:
                    yield Slabs(route, size, rows)
    elif n > MOST_POINTS:
        return
    elif route == "screened" and queries == m:
        piece = _PACKED_AT_ONCE // (problem.d * problem.itemsize) // POINT_TILE * POINT_TILE
        yield Slabs(route, points if "point_slab" in overrides else min(n, max(POINT_TILE, piece)), m)
    elif route == "resident" and (points, queries) == (n, m):
        yield Slabs(route, n, m)


def _halves(count: int) -> list[int]:
    """All, a half, a quarter and so on, in whole tiles."""
    sizes = [count]
    while sizes[-1] > POINT_TILE:
        sizes.append(-(-sizes[-1] // (2 * POINT_TILE)) * POINT_TILE)
    return sizes
