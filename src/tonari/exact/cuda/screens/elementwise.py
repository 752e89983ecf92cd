"""The screen for elementwise metrics, whose terms are not products: float32 arithmetic, without matrix units.

A program has fewer queries if the batch is short, or if the metric's terms contain a division, which needs more
registers per score.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tonari.cuda.launch import launch
from tonari.exact.cuda.rows.groups import LEAST_GROUP, POINT_TILE, group_count
from tonari.exact.cuda.rows.pack import PackedPoints, PackedQueries
from tonari.metrics import cuda_terms, get_metric


@dataclass(frozen=True)
class _Tile:
    """The scores of one program: `r` rows and `c` columns for each of `tr` x `tc` threads, with tc * c = POINT_TILE."""

    r: int
    c: int
    tr: int
    tc: int

    @property
    def rows(self) -> int:
        return self.r * self.tr


# The tiles of programs, smallest first. On Hopper, l1 takes 119, 105 and 168 registers per thread, so that 16, 16 and
# 12 warps fit on a multiprocessor.
_TILES = (_Tile(4, 8, 4, 16), _Tile(4, 8, 8, 16), _Tile(8, 8, 8, 16))
_DIVIDING_TILES = _TILES[:2]


def screen_elementwise(queries: Any, points: Any, minima: Any, *, metric: str, group: int, rows: slice) -> None:
    """Write a certified lower bound on the scores of every group of points, for some of the queries.

    Parameters
    ----------
    queries : PackedQueries
        Packed as "float32".
    points : PackedPoints
        Packed as "float32".
    minima : float32 tensor (rows, group_count(n, group))
        Output; ``stride(1) == 1``. The minimum of ``low + f(q, x)`` over the group's members, minus N e1 + r e2: a
        lower bound on every member's score. It is inf if the whole group is padding.
    metric : str
        An elementwise metric.
    group : int
        Points per group: 8, 16 or 32.
    rows : slice
        The queries to screen.
    """
    from tonari.exact.cuda.kernels.screens.elementwise import screen_elementwise_kernel

    values = queries.values[rows]
    m, width = values.shape
    tiles = _DIVIDING_TILES if get_metric(metric).divides else _TILES
    terms = cuda_terms(metric)
    tile = next((tile for tile in tiles if m <= tile.rows), tiles[-1])
    launch(
        screen_elementwise_kernel,
        -(-m // tile.rows) * len(points.e1),
        {
            "queries_ptr": values,
            "points_ptr": points.values,
            **queries.errors(rows),
            **points.terms,
            "minima_ptr": minima,
            "m": m,
            "d": width,
            "stride": minima.stride(0),
        },
        constants={
            "ADD_TERMS": terms.add_terms,
            "PREPARE": terms.prepare,
            "COMPLEMENT": terms.complement,
            "GROUP": group,
            "POINT_TILE": POINT_TILE,
            "R": tile.r,
            "C": tile.c,
            "TR": tile.tr,
            "TC": tile.tc,
        },
        warps=tile.tr * tile.tc // 32,
    )


def screen_parts(packed: PackedQueries, points: PackedPoints, metric: str) -> Any:
    """Return a lower bound on the scores of every group of LEAST_GROUP points, float32 (rows, groups)."""
    import torch

    rows = len(packed.values)
    groups = group_count(points.n, LEAST_GROUP)
    minima = torch.empty((rows, groups), dtype=torch.float32, device=packed.values.device)
    screen_elementwise(packed, points, minima, metric=metric, group=LEAST_GROUP, rows=slice(0, rows))
    return minima
