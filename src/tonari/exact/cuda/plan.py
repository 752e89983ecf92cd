"""The plan of brute force on CUDA: one frozen record, made by a pure function of problem and machine."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tonari import inputs
from tonari.core.errors import BudgetExceeded, Unsupported
from tonari.core.plan import Plan
from tonari.core.problem import Problem
from tonari.core.units import MIB
from tonari.costs.model import brute_seconds
from tonari.cuda.memory import available
from tonari.exact.cuda.groups import GROUP_SIZES, POINT_TILE
from tonari.exact.cuda.memory import LEAST_BATCH, MOST_POINTS, CudaNeeds, Slabs
from tonari.exact.overrides import ON_CUDA
from tonari.inputs.overrides import check_overrides
from tonari.metrics import get_metric
from tonari.metrics.problem import refuse_own_metric

ROUTES = ("resident", "host_refine", "streamed")  # in the order in which they are tried
# Precision levels by form; the last one settles whatever is left by exact values.
PRECISIONS = {"gemm": ("float16", "split", "values"), "elementwise": ("float32", "values")}

SHARDS = ("points", "queries")

# What any card is taken to have to spare. A search that needs no more is planned without asking how much there is, and
# once for all like it: both take longer than a small search.
_SPARE_BYTES = 1 << 30
_PACKED_AT_ONCE = 256 * MIB  # original rows that pass by while the copy of "host_refine" is made


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
        "host_refine": only the packed copy of the points is held, and the CPU refines what it lets through from the
        original rows in host memory.
    shard : str
        Of several devices, what each has an equal part of. "points": every query visits every part, and lists are
        merged. "queries": all points are on each device. "none" for one device.
    precisions : tuple of str
        Precisions of the screen, first to last; rows that one cannot prove retry to the next. "values", the last,
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
    cuda_graph : bool
        Whether the second search of these shapes is captured as a CUDA graph, which later ones replay: a small one on
        one device, of tensors there, that nobody has limited.
    packed_bytes, copied_bytes, working_bytes, output_bytes : int
        Memory of one device beyond what lies there already: packed points; original rows copied from host memory;
        everything temporary; results.
    seconds : float
        Rough expectation.
    """

    route: str
    shard: str
    precisions: tuple[str, ...]
    group: int
    width: int
    query_batch: int
    query_slab: int
    point_slab: int
    cuda_graph: bool

    @property
    def replayable(self) -> bool:
        return self.cuda_graph

    def for_problem(self, problem: Problem) -> CudaPlan:
        """The plan for a problem of its sizes, whose points are where the route needs them."""
        super().for_problem(problem)
        if self.route == "host_refine" and not problem.host_points:
            raise ValueError(
                "the plan's route is 'host_refine', which refines from host memory: the points are on a device"
            )
        return self


def plan_on_cuda(
    problem: Problem, *, free_bytes: int | None = None, prepared_by: CudaPlan | None = None, **overrides: Any
) -> CudaPlan:
    """Plan brute force on CUDA; see :func:`tonari.plan`.

    Everything stays on the device ("resident") if it fits. If it does not, points come from host memory slab by slab
    ("streamed"), and queries too if they have to; the slabs are those with the least expected time. "host_refine" is
    chosen where the packed copy fits, the original rows do not, and queries are so few (for an
    :class:`tonari.Index`, always) that refining on the CPU is no slower than to let all points pass once more; else
    only by name. The second level is left out where its packed copy would not fit.

    Several devices share the points, or the queries where all points fit on each and that takes less time: then no
    list has to be merged, and no row refined more than once, but more points have to be copied.

    Parameters
    ----------
    problem : Problem
    free_bytes : int, optional
        Memory that can be had on each device. Default: what is free there.
    prepared_by : CudaPlan, optional
        The plan by which the points were prepared before, whose memory can be had again.
    **overrides
        As :data:`tonari.exact.overrides.ON_CUDA` lists them.

    Raises
    ------
    ValueError
        For an override or a budget that cannot work, with the reason.

    Examples
    --------
    >>> from tonari.metrics.problem import make_problem
    >>> problem = make_problem(10**6, 10**4, 128, 10, dtype="float32", metric="euclidean", devices=("cuda:0",))
    >>> made = plan_on_cuda(problem, free_bytes=80 * 10**9)
    >>> made.route, made.precisions, made.group, made.width
    ('resident', ('float16', 'split', 'values'), 32, 16)
    """
    why_not = refuse_own_metric(problem)
    if why_not is not None:
        raise Unsupported(why_not)
    usual = not overrides
    if prepared_by is not None:
        overrides = {name: getattr(prepared_by, name) for name in ("route", "shard", "point_slab")} | overrides
    if free_bytes is None and problem.memory is None and usual:
        small = _plan_within_spare(problem, tuple(overrides.items()))
        if small is not None:
            return small
    budget = available(problem.devices, free_bytes)
    if prepared_by is not None and prepared_by.route != "streamed":
        budget += prepared_by.packed_bytes + prepared_by.copied_bytes
    return _plan_within(problem, budget, overrides, usual=usual)


@functools.lru_cache(maxsize=1024)
def _plan_within_spare(problem: Problem, overrides: tuple[tuple[str, Any], ...]) -> CudaPlan | None:
    """The plan of a search that stays on the device and whose memory nobody has to look for; else None."""
    try:
        plan = _plan_within(problem, _SPARE_BYTES, dict(overrides), usual=True)
    except BudgetExceeded:
        return None
    return plan if plan.route == "resident" and plan.query_batch >= problem.m else None


def _plan_within(problem: Problem, free: int, overrides: dict[str, Any], *, usual: bool) -> CudaPlan:
    """The plan for devices that can give so much memory; `usual` where the caller overrides nothing."""
    n, m, d, k, devices = problem.n, problem.m, problem.d, problem.k, problem.devices
    form = get_metric(problem.metric).form
    asked = problem.memory
    budget = free if asked is None else min(asked, free)
    several = len(devices) > 1
    _check_overrides(overrides, n, m, len(devices), form, host_points=problem.host_points)
    wanted = k + problem.self_join
    whole = CudaNeeds(
        n=n,
        m=m,
        d=d,
        k=k,
        itemsize=inputs.dtype_of(problem.dtype).itemsize,
        query_itemsize=inputs.dtype_of(problem.query_dtype).itemsize,
        value_itemsize=8 if problem.value_dtype == "float64" else 4,
        gemm=form == "gemm",
        self_join=problem.self_join,
        host_points=problem.host_points,
        host_queries=problem.host_queries,
        precisions=tuple(overrides.get("precisions", PRECISIONS[form])),
        group=GROUP_SIZES[-1],
        width=overrides.get("width", wanted + max(6, wanted // 8)),
        several=several,
        results=0 if problem.host_queries else m,
    )
    shards = list(_shards(whole, len(devices), overrides))
    tile = min(LEAST_BATCH, overrides.get("query_batch", LEAST_BATCH))
    choices = [(shard, *_fit(needs, budget, limits)) for shard, needs, limits in shards]
    shard, needs, slabs, batch = min(choices, key=lambda choice: (-min(choice[3], tile), choice[1].seconds(choice[2])))
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
    in_place = not (several or problem.host_points or problem.host_queries)
    return CudaPlan(
        n=n,
        m=m,
        d=d,
        k=k,
        dtype=problem.dtype,
        metric=problem.metric,
        method="exact",
        device="cuda",
        devices=devices,
        isa="",
        threads=0,
        route=slabs.route,
        shard=shard,
        precisions=needs.precisions,
        group=needs.group,
        width=needs.refined_groups(slabs),
        query_batch=batch,
        query_slab=slabs.queries,
        point_slab=slabs.points,
        cuda_graph=usual and asked is None and in_place and slabs.route == "resident" and batch >= m,
        packed_bytes=needs.packed_bytes(slabs, needs.precisions[0]),
        copied_bytes=needs.copied_bytes(slabs),
        working_bytes=needs.working_bytes(slabs, batch),
        output_bytes=needs.output_bytes(slabs),
        seconds=brute_seconds(problem, "", len(devices)) + needs.copying_seconds(slabs),
    )


def share(count: int, devices: int) -> int:
    """Rows of each of several devices, in whole tiles; the last has what is left, and there may be too few for all.

    >>> [share(count, 4) for count in (1000, 100)]
    [256, 100]
    """
    return count if devices == 1 else min(count, -(-count // (devices * POINT_TILE)) * POINT_TILE)


def _check_overrides(overrides: dict[str, Any], n: int, m: int, devices: int, form: str, *, host_points: bool) -> None:
    """Refuse overrides that cannot work, whatever memory there is."""
    check_overrides(overrides, ON_CUDA)
    route, shard = overrides.get("route"), overrides.get("shard")
    if "route" in overrides and route not in ROUTES:
        raise ValueError(f"route={route!r}: expected one of {', '.join(ROUTES)}")
    if route == "host_refine" and not host_points:
        raise ValueError("route='host_refine' refines from host memory, but the points lie on a device")
    if "shard" in overrides:
        known = SHARDS if devices > 1 else ("none",)
        if shard not in known:
            raise ValueError(f"shard={shard!r}: expected one of {', '.join(known)} on {devices} devices")
        if shard == "queries" and route not in (None, "resident"):
            raise ValueError(f"shard='queries': route={route!r} does not hold all points on each device")
    n, m = (n, share(m, devices)) if shard == "queries" else (share(n, devices), m)
    if route in ("resident", "host_refine") and n > MOST_POINTS:
        raise ValueError(f"route={route!r}: a device takes at most {MOST_POINTS} points at once, not {n}")
    if "precisions" in overrides:
        _check_precisions(overrides["precisions"], form)
    if "group" in overrides and overrides["group"] not in GROUP_SIZES:
        raise ValueError(f"group={overrides['group']!r}: expected one of {', '.join(map(str, GROUP_SIZES))}")
    holds_all = "shard='queries'" if shard == "queries" else f"route={route!r}" if route == "resident" else None
    if "point_slab" in overrides:
        points = overrides["point_slab"]
        if points < n and points % POINT_TILE:
            raise ValueError(f"point_slab must be a multiple of {POINT_TILE}, or all {n} points, got {points}")
        if points < n and holds_all:
            raise ValueError(f"point_slab={points}: {holds_all} holds all {n} points at once")
        if min(points, n) > MOST_POINTS:
            raise ValueError(f"point_slab={points}: a device takes at most {MOST_POINTS} points at once")
    if overrides.get("query_slab", m) < m and (holds_all or route == "host_refine"):
        raise ValueError(f"query_slab={overrides['query_slab']}: only route='streamed' takes queries slab by slab")


def _check_precisions(precisions: Any, form: str) -> None:
    levels = tuple(precisions) if isinstance(precisions, list | tuple) else ()
    rising = list(levels) == [level for level in PRECISIONS[form] if level in levels]
    if len(levels) < 2 or not rising or levels[-1] != "values":
        raise ValueError(
            f"precisions={precisions!r}: expected a tuple that rises through {', '.join(PRECISIONS[form])} and ends "
            f"there, such as {(PRECISIONS[form][0], 'values')}"
        )


def _shards(
    whole: CudaNeeds, devices: int, overrides: dict[str, Any]
) -> Iterator[tuple[str, CudaNeeds, dict[str, Any]]]:
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


def _fit(needs: CudaNeeds, budget: int, overrides: dict[str, Any]) -> tuple[CudaNeeds, Slabs, int]:
    """The best choice within the budget, and its batch of queries: that of the first route which allows a batch of a
    whole tile; where none does, that with the longest batch; a batch of 0 where nothing fits.
    """
    tile = min(LEAST_BATCH, overrides.get("query_batch", LEAST_BATCH))
    bests = []
    for route in ROUTES:
        choices = [
            (made, slabs, _batch(made, slabs, budget, overrides)) for made, slabs in _on(route, needs, overrides)
        ]
        if choices:
            bests.append(max(choices, key=lambda c: (min(c[2], tile), len(c[0].precisions), -c[0].seconds(c[1]))))
            if bests[-1][2] >= tile:
                return bests[-1]
    return max(bests, key=lambda choice: choice[2])


def _batch(needs: CudaNeeds, slabs: Slabs, budget: int, overrides: dict[str, Any]) -> int:
    asked = overrides.get("query_batch")
    if asked is None:
        return needs.batch(slabs, budget)
    return int(asked) if needs.total_bytes(slabs, asked) <= budget else 0


def _on(route: str, needs: CudaNeeds, overrides: dict[str, Any]) -> Iterator[tuple[CudaNeeds, Slabs]]:
    """What may be done on a route, each with the group that takes the least time."""
    if overrides.get("route", route) != route:
        return
    ways = [needs.precisions]
    if "precisions" not in overrides:  # a second level is worth its memory where the first has its own
        short = tuple(level for level in needs.precisions if level != "split")
        ways = [short] if route == "host_refine" else [needs.precisions, short]
    groups = [overrides["group"]] if "group" in overrides else GROUP_SIZES
    for slabs in _slabs(route, needs, overrides):
        group = min(groups, key=lambda size: dataclasses.replace(needs, group=size).row_seconds(needs.held(slabs)))
        for precisions in dict.fromkeys(ways):
            made = dataclasses.replace(needs, precisions=precisions, group=group)
            if route == "host_refine" and "route" not in overrides and not _is_for_few(made, slabs):
                continue
            yield made, slabs


def _is_for_few(needs: CudaNeeds, slabs: Slabs) -> bool:
    """Whether the CPU refines sooner than points that do not stay would come again."""
    return needs.host_points and needs.refine_on_cpu_seconds(slabs) <= needs.pass_seconds()


def _slabs(route: str, needs: CudaNeeds, overrides: dict[str, Any]) -> Iterator[Slabs]:
    """The slabs of a route: as overridden, else all that halving gives."""
    n, m = needs.n, needs.m
    points, queries = min(n, overrides.get("point_slab", n)), min(m, overrides.get("query_slab", m))
    if route == "streamed":
        for size in [points] if "point_slab" in overrides else _halves(n):
            for rows in [queries] if "query_slab" in overrides else _halves(m):
                if size <= MOST_POINTS:
                    yield Slabs(route, size, rows)
    elif n > MOST_POINTS:
        return
    elif route == "host_refine" and queries == m:
        piece = _PACKED_AT_ONCE // (needs.d * needs.itemsize) // POINT_TILE * POINT_TILE
        yield Slabs(route, points if "point_slab" in overrides else min(n, max(POINT_TILE, piece)), m)
    elif route == "resident" and (points, queries) == (n, m):
        yield Slabs(route, n, m)


def _halves(count: int) -> list[int]:
    """All, a half, a quarter and so on, in whole tiles."""
    sizes = [count]
    while sizes[-1] > POINT_TILE:
        sizes.append(-(-sizes[-1] // (2 * POINT_TILE)) * POINT_TILE)
    return sizes
