"""The certificate bites: take the bound away and answers go wrong; with it they are right, on the same native code.

Two ways to take it away. Pack points that were rounded beforehand: the bound measures what packing loses, and finds
nothing, while refinement still reads the original rows. Or multiply the bound by zero, with `bound_scale` of the
native block.
"""

from __future__ import annotations

import functools
from typing import Any

import checks
import numpy as np
import numpy.typing as npt
import pytest
from checks import assert_same_neighbors

import tonari
from tonari import _native
from tonari.exact import PreparedPoints, engine, search_prepared
from tonari.pool import Workers
from tonari.reference import brute
from tonari.results import Neighbors

Array = npt.NDArray[Any]
N, M, D, K = 2000, 60, 16, 10


def to_bfloat16(rows: Array) -> Array:
    """Round float32 to bfloat16, to nearest even, still held as float32."""
    bits = rows.astype(np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000).astype(np.uint32).view(np.float32)


class SeenAs(PreparedPoints):
    """Points that the screen sees as other rows; values come from the true ones."""

    def __init__(self, points: Array, seen: Array, plan: tonari.Plan) -> None:
        super().__init__(points, plan)
        self.seen = seen
        self.form = _native.Form(plan.metric, [0.0] * points.shape[1], 1.0)  # rows are packed as they are

    def pack(self, kernel: str, slices: list[tuple[int, int]], workers: Workers) -> list[_native.PackedPoints]:
        return [_native.PackedPoints(kernel, self.form, self.seen, *bounds) for bounds in slices]


def search_seen_as(queries: Array, points: Array, seen: Array, isa: str, precision: str) -> Neighbors:
    plan = tonari.plan(
        len(points), len(queries), points.shape[1], K, dtype=points.dtype, isa=isa, ladder=(precision,), threads=1,
        resident=False,
    )  # fmt: skip
    return search_prepared(queries, SeenAs(points, seen, plan), plan)[0]


def wrong_rows(found: Neighbors, truth: Neighbors) -> int:
    return int((found.indices != truth.indices).any(axis=1).sum())


def kernels_of(precision: str) -> list[str]:
    names = (name.split("/") for name in _native.kernel_names())
    return [isa for operation, kind, isa in names if (operation, kind) == ("inner", precision)]


# precision -> (points that it rounds, the same rounded)
def rounded_by(precision: str) -> tuple[Array, Array]:
    if precision == "int8":
        points = np.random.default_rng(0).uniform(-4, 4, (N, D)).astype(np.float32)
        return points, np.rint(points)
    points = checks.offset(N, D, by=100)
    return points, to_bfloat16(points)


CASES = [(precision, isa) for precision in ("int8", "bfloat16") for isa in kernels_of(precision)]


@pytest.mark.parametrize(("precision", "isa"), CASES)
def test_rounding_that_is_not_measured_gives_wrong_answers(precision: str, isa: str) -> None:
    points, seen = rounded_by(precision)
    queries = seen[:M]  # exact at this precision: all error is in the points
    truth = brute(queries, points, K)
    assert_same_neighbors(search_seen_as(queries, points, points, isa, precision), truth)
    assert wrong_rows(search_seen_as(queries, points, seen, isa, precision), truth) > M // 2


def search_with(
    bound_scale: float, queries: Array, points: Array, patch: pytest.MonkeyPatch, **choices: Any
) -> Neighbors:
    """Search with the queries' part of every bound multiplied by `bound_scale`."""
    plan = tonari.plan(len(points), len(queries), points.shape[1], K, dtype=points.dtype, threads=1, **choices)
    patch.setattr(engine._native, "RowBlock", functools.partial(_native.RowBlock, bound_scale=bound_scale))
    return search_prepared(queries, PreparedPoints(points, plan), plan)[0]


@pytest.mark.parametrize(("precision", "isa"), CASES)
def test_without_the_bound_tight_clusters_go_wrong(precision: str, isa: str, monkeypatch: pytest.MonkeyPatch) -> None:
    points = checks.tight_far_clusters(N, D, 1)
    truth = brute(points[:M], points, K)
    choices = {"isa": isa, "ladder": (precision,)}
    assert_same_neighbors(search_with(1.0, points[:M], points, monkeypatch, **choices), truth)
    assert wrong_rows(search_with(0.0, points[:M], points, monkeypatch, **choices), truth) > M // 2


@pytest.mark.parametrize("isa", kernels_of("float32"))
def test_without_the_bound_sums_in_float32_go_wrong(isa: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # Whole numbers that float32 holds but whose products it does not: packing loses nothing, only sums do. Products of
    # rows have no term of the points' own, so that the queries' part is the whole bound.
    points = 2.0**22 + np.random.default_rng(0).integers(0, 30, (N, 128))
    truth = brute(points[:M], points, K, "inner_product")
    choices = {"isa": isa, "ladder": ("float32",), "metric": "inner_product"}
    found = search_with(1.0, points[:M], points, monkeypatch, **choices)
    assert_same_neighbors(found, truth, metric="inner_product")
    assert wrong_rows(search_with(0.0, points[:M], points, monkeypatch, **choices), truth) > M // 2
