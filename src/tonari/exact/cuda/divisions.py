"""The possible divisions of a search among devices and into slabs, and their routes; the plan takes the best."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

from tonari import inputs
from tonari.core.errors import Unsupported
from tonari.core.problem import Problem
from tonari.costs.rates import CARD
from tonari.exact.cuda import tuning
from tonari.exact.cuda.coded_memory import CodesNeeds, in_codes
from tonari.exact.cuda.memory import LEAST_BATCH, MOST_POINTS, CudaNeeds, Slabs
from tonari.exact.cuda.plan import PILOT
from tonari.exact.cuda.rows.codes import MOST_CODED
from tonari.exact.cuda.rows.form_dim import largest_form_dim
from tonari.exact.cuda.rows.groups import GROUP_SIZES, POINT_TILE
from tonari.exact.cuda.screens.widths import usual_width
from tonari.exact.plan import ON_CUDA
from tonari.inputs.overrides import check_overrides
from tonari.metrics import get_metric

ROUTES = ("resident", "host_refine", "codes", "streamed")  # in the order of preference
SHARDS = ("points", "queries")
# The precisions of each form, in the order of their use; "values" computes all exact values of the remaining rows.
PRECISIONS = {"gemm": ("float16", "split", "values"), "elementwise": ("float32", "values")}


def share(count: int, devices: int) -> int:
    """Return the rows per device, in whole tiles; the last device has the rest, and some devices may have no rows.

    >>> [share(count, 4) for count in (1000, 100)]
    [256, 100]
    """
    return count if devices == 1 else min(count, -(-count // (devices * POINT_TILE)) * POINT_TILE)


def points_at_home(whole: CudaNeeds, devices: int) -> int:
    """Return the number of points for the device that has all points at first, if several devices share a search.

    Each other device must first receive a copy of its points, at a rate that they all share. The other devices are
    therefore assigned fewer points, such that all devices finish at the same time. The result is 0 if no such division
    exists: if there is one device, if the points are in host memory, or if there are too few points.
    """
    if devices == 1 or whole.host_points:
        return 0
    equal = dataclasses.replace(whole, n=share(whole.n, devices))
    search = whole.m * equal.row_seconds(equal.n) / equal.n  # seconds that a device takes per point, for all queries
    waiting = whole.d * whole.itemsize / CARD.peer + search / (devices - 1)
    tiles = round(whole.n * search / (search + waiting)) // ((devices - 1) * POINT_TILE)
    each = max(1, tiles) * POINT_TILE
    rest = whole.n - each * (devices - 1)
    return rest if rest > each else 0


def ways_of(problem: Problem, overrides: dict[str, Any]) -> list[tuple[str, CudaNeeds, dict[str, Any]]]:
    """Return the ways to divide a search among its devices; see :func:`divisions`."""
    n, m, d, k = problem.n, problem.m, problem.d, problem.k
    form, devices, form_dim = get_metric(problem.metric).form, len(problem.devices), form_dim_of(overrides, problem)
    if form_dim and (overrides["form_dim"] == PILOT or not problem.host_points):
        overrides = {"route": "resident"} | overrides
    refuse_overrides(overrides, n, m, devices, form, host_points=problem.host_points)
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
        precisions=tuple(overrides.get("precisions", usual_precisions(form, d, problem.dtype))),
        group=GROUP_SIZES[-1],
        width=overrides.get("width", max(tuning.CONTRACTED_WIDTH if form_dim else 0, default_width(problem))),
        form_dim=form_dim,
        devices=devices,
        results=0 if problem.host_queries else m,
    )
    return list(divisions(whole, devices, overrides))


def default_width(problem: Problem) -> int:
    """Return the default of `width`, the number of groups that the first attempt refines per row."""
    return usual_width(problem.k + problem.self_join)


def usual_precisions(form: str, d: int, dtype: str) -> tuple[str, ...]:
    """Return the precisions of the screen for rows of d columns, in the order of their use.

    >>> usual_precisions("gemm", 3, "float32"), usual_precisions("gemm", 3, "uint8")
    (('split', 'values'), ('float16', 'split', 'values'))
    """
    levels = PRECISIONS[form]
    exact = inputs.dtype_of(dtype).kind in "iu"
    return levels[1:] if form == "gemm" and d <= tuning.SPLIT_FIRST and not exact else levels


def least_bytes(problem: Problem, **overrides: Any) -> int:
    """Return the bytes per device that the most economical division needs; `overrides` are fields of a plan."""
    return least_of(ways_of(problem, overrides), overrides)


def least_of(ways: list[tuple[str, CudaNeeds, dict[str, Any]]], overrides: dict[str, Any]) -> int:
    """Return the bytes per device that the most economical of these ways to divide a search needs."""
    return min(
        made.total_bytes(at, overrides.get("query_batch", 1))
        for _, part, limits in ways
        for route in ROUTES
        for made, at in on_route(route, part, limits)
    )


def form_dim_of(overrides: dict[str, Any], problem: Problem) -> int:
    """Return the number of coordinates of contracted rows that the overrides request, 0 for all dimensions."""
    option = overrides.get("form_dim", "full")
    if option == "full":
        return 0
    if option == PILOT:
        # A pilot chooses the number when the points are prepared; the plan reserves memory for the largest.
        return largest_form_dim(problem.d)
    whole = type(option) is int or (isinstance(option, str) and option.isdecimal())  # a string from the command line
    columns = int(option) if whole else 0
    if not 2 <= columns < problem.d:
        raise ValueError(
            f"form_dim={option!r}: expected 'full', 'pilot' or a whole number from 2 to d - 1 = {problem.d - 1}"
        )
    metric = get_metric(problem.metric)
    if not (metric.squares or metric.angular):
        raise Unsupported(
            f"form_dim={option}: there is no contraction for metric={problem.metric!r}, only for euclidean, "
            "sqeuclidean, cosine and correlation; leave form_dim out"
        )
    if overrides.get("route") == "streamed":
        raise Unsupported(f"form_dim={option}: route='streamed' screens all dimensions; leave form_dim or route out")
    if overrides.get("route") == "codes" and columns > MOST_CODED:
        raise ValueError(f"form_dim={option}: route='codes' takes at most {MOST_CODED} coordinates")
    return columns


def divisions(
    whole: CudaNeeds, devices: int, overrides: dict[str, Any]
) -> Iterator[tuple[str, CudaNeeds, dict[str, Any]]]:
    """Yield each way to divide a search among devices: its `shard`, the first device's needs, and its overrides."""
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


def fit(needs: CudaNeeds, budget: int, overrides: dict[str, Any]) -> tuple[CudaNeeds, Slabs, int]:
    """Return the best route and slabs of a search within the budget, and its number of queries per batch.

    The best route is the first one whose batch has at least one tile, else the one with the longest batch. The batch is
    0 if no route fits.
    """
    tile = min(LEAST_BATCH, overrides.get("query_batch", LEAST_BATCH))
    bests = []
    for route in ROUTES:
        choices = [
            (made, slabs, _batch(made, slabs, budget, overrides)) for made, slabs in on_route(route, needs, overrides)
        ]
        # Prefer the largest number of coordinates that fits: with fewer, many rows may remain unproved.
        if route == "codes":
            choices = [choice for choice in choices if choice[2] >= tile][:1] or choices
        if choices:
            # Without "split", all rows that float16 does not prove would be compared with all points.
            bests.append(max(choices, key=lambda c: (min(c[2], tile), "split" in c[0].precisions, -c[0].seconds(c[1]))))
            if bests[-1][2] >= tile:
                return bests[-1]
    return max(bests, key=lambda choice: choice[2])


def _batch(needs: CudaNeeds, slabs: Slabs, budget: int, overrides: dict[str, Any]) -> int:
    asked = overrides.get("query_batch")
    if asked is None:
        return needs.batch(slabs, budget)
    return int(asked) if needs.total_bytes(slabs, asked) <= budget else 0


def on_route(route: str, needs: CudaNeeds, overrides: dict[str, Any]) -> Iterator[tuple[CudaNeeds, Slabs]]:
    """Yield the needs and slabs with which a route can search; each has the group size that is fastest for it."""
    if overrides.get("route", route) != route or (needs.form_dim and route == "streamed"):
        return
    if route == "codes":
        yield from _in_codes(needs, overrides)
        return
    ways = [needs.precisions]
    if "precisions" not in overrides:  # "split" needs a packed copy of its own, so try without it, too
        usual = PRECISIONS["gemm" if needs.gemm else "elementwise"]
        short = tuple(level for level in usual if level != "split")
        from_host = route == "host_refine" and not needs.form_dim  # "split" would copy all rows once more
        ways = [short] if from_host else [needs.precisions, short]
    groups = [overrides["group"]] if "group" in overrides else GROUP_SIZES
    for slabs in _slabs(route, needs, overrides):
        group = min(groups, key=lambda size: dataclasses.replace(needs, group=size).row_seconds(needs.held(slabs)))
        for precisions in dict.fromkeys(ways):
            made = dataclasses.replace(needs, precisions=precisions, group=group)
            if route == "host_refine" and "route" not in overrides and not (needs.form_dim or _is_for_few(made, slabs)):
                continue
            yield made, slabs


def _in_codes(needs: CudaNeeds, overrides: dict[str, Any]) -> Iterator[tuple[CodesNeeds, Slabs]]:
    """If the caller requests codes, yield the needs and slabs of a search by codes, from most to fewest coordinates."""
    if overrides.get("route") != "codes":
        return
    groups = [overrides["group"]] if "group" in overrides else GROUP_SIZES
    for coded in in_codes(needs):
        for slabs in _slabs("codes", needs, overrides):
            ways = [dataclasses.replace(coded, group=size) for size in groups]
            yield min(ways, key=lambda way: way.row_seconds(needs.n)), slabs


def _is_for_few(needs: CudaNeeds, slabs: Slabs) -> bool:
    """Whether the CPU refines all queries in at most the time of copying all points to the device once."""
    return needs.host_points and needs.refine_on_cpu_seconds(slabs) <= needs.pass_seconds()


def _slabs(route: str, needs: CudaNeeds, overrides: dict[str, Any]) -> Iterator[Slabs]:
    """Yield the slabs of a route: the caller's size, else all points, half of them, a quarter, and so on."""
    n, m = needs.n, needs.m
    points, queries = min(n, overrides.get("point_slab", n)), min(m, overrides.get("query_slab", m))
    if route == "streamed":
        for size in [points] if "point_slab" in overrides else _halves(n):
            for rows in [queries] if "query_slab" in overrides else _halves(m):
                if size <= MOST_POINTS:
                    yield Slabs(route, size, rows)
    elif n > MOST_POINTS:
        return
    elif route in ("host_refine", "codes") and queries == m:
        piece = tuning.PACKED_AT_ONCE // (needs.d * needs.itemsize) // POINT_TILE * POINT_TILE
        yield Slabs(route, points if "point_slab" in overrides else min(n, max(POINT_TILE, piece)), m)
    elif route == "resident" and (points, queries) == (n, m):
        yield Slabs(route, n, m)


def _halves(count: int) -> list[int]:
    """Return `count`, a half of it, a quarter and so on, down to one tile; parts are rounded up to whole tiles."""
    sizes = [count]
    while sizes[-1] > POINT_TILE:
        sizes.append(-(-sizes[-1] // (2 * POINT_TILE)) * POINT_TILE)
    return sizes


def refuse_overrides(overrides: dict[str, Any], n: int, m: int, devices: int, form: str, *, host_points: bool) -> None:
    """Raise ValueError for overrides that cannot work with any amount of memory."""
    check_overrides(overrides, ON_CUDA)
    route, shard = overrides.get("route"), overrides.get("shard")
    if "route" in overrides and route not in ROUTES:
        raise ValueError(f"route={route!r}: expected one of {', '.join(ROUTES)}")
    if route == "host_refine" and not host_points:
        raise ValueError("route='host_refine' refines from host memory, but the points are on a device")
    if route == "codes":
        _refuse_codes(overrides, host_points=host_points)
    if "shard" in overrides:
        known = SHARDS if devices > 1 else ("none",)
        if shard not in known:
            raise ValueError(f"shard={shard!r}: expected one of {', '.join(known)} on {devices} devices")
        if shard == "queries" and route not in (None, "resident"):
            raise ValueError(f"shard='queries': route={route!r} does not hold all points on each device")
    n, m = (n, share(m, devices)) if shard == "queries" else (share(n, devices), m)
    form_dim = overrides.get("form_dim", "full")
    at_once = route in ("resident", "host_refine", "codes")
    whole = f"route={route!r}" if at_once else f"form_dim={form_dim!r}"
    if (at_once or form_dim != "full") and n > MOST_POINTS:
        raise ValueError(f"{whole}: a device takes at most {MOST_POINTS} points at once, not {n}")
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
    if overrides.get("query_slab", m) < m and (holds_all or route in ("host_refine", "codes") or form_dim != "full"):
        raise ValueError(f"query_slab={overrides['query_slab']}: only route='streamed' takes queries slab by slab")


def _refuse_codes(overrides: dict[str, Any], *, host_points: bool) -> None:
    """Raise ValueError for overrides that a search by codes cannot follow."""
    if not host_points:
        raise ValueError(
            "route='codes' reads rows from host memory, but the points are on a device; pass an array in host memory, "
            "or leave route out"
        )
    if "precisions" in overrides:
        raise ValueError("precisions: route='codes' screens in int8 only; leave precisions out")


def _check_precisions(precisions: Any, form: str) -> None:
    levels = tuple(precisions) if isinstance(precisions, list | tuple) else ()
    rising = list(levels) == [level for level in PRECISIONS[form] if level in levels]
    if len(levels) < 2 or not rising or levels[-1] != "values":
        raise ValueError(
            f"precisions={precisions!r}: expected a tuple in the order {', '.join(PRECISIONS[form])} that ends "
            f"with 'values', such as {(PRECISIONS[form][0], 'values')}"
        )
