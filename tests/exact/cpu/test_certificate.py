"""The certificate is needed: without the bound, answers are wrong; with it they are right, in the same native code.

The bound is brought to zero by packing points that were rounded beforehand: it measures what packing loses, and here
packing loses nothing, while refinement still reads the original rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import tonari
from tests.helpers import checks
from tests.helpers.checks import assert_same_neighbors
from tests.helpers.kernels import planned_search
from tonari.core import _native
from tonari.core.process.workers import Workers
from tonari.core.results.neighbors import Neighbors
from tonari.exact import PreparedPoints, search_prepared
from tonari.metrics.reference import brute

Array = npt.NDArray[Any]
N, M, D, K = 2000, 60, 16, 10


def to_bfloat16(rows: Array) -> Array:
    """Round float32 to bfloat16, to nearest even, still held as float32."""
    bits = rows.astype(np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000).astype(np.uint32).view(np.float32)


class SeenAs(PreparedPoints):
    """Points that the screen sees as other rows; exact values come from the true rows."""

    def __init__(self, points: Array, seen: Array, plan: tonari.Plan) -> None:
        super().__init__(points, plan)
        self.seen = seen
        self.form = _native.Form(plan.metric, [0.0] * points.shape[1], 1.0)  # rows are packed unchanged

    def pack(
        self, kernel: str, slices: list[tuple[int, int]], workers: Workers, bar: Any = None, *, looks: bool = True
    ) -> list[_native.PackedPoints]:
        return [_native.PackedPoints(kernel, self.form, self.seen, *bounds) for bounds in slices]


def search_seen_as(queries: Array, points: Array, seen: Array, isa: str, precision: str) -> Neighbors:
    plan = tonari.plan(
        len(points), len(queries), points.shape[1], K, dtype=points.dtype, isa=isa, precisions=(precision,), threads=1,
        resident=False,
    )  # fmt: skip
    return search_prepared(queries, SeenAs(points, seen, plan), plan)[0]


def wrong_rows(found: Neighbors, truth: Neighbors) -> int:
    return int((found.indices != truth.indices).any(axis=1).sum())


def kernels_of(precision: str) -> list[str]:
    names = (name.split("/") for name in _native.kernel_names())
    return [isa for operation, kind, isa in names if (operation, kind) == ("inner", precision)]


# precision -> (points that it rounds, the rounded points, and the number of M rows that must become wrong at least)
def rounded_by(precision: str) -> tuple[Array, Array, int]:
    if precision == "int8":
        points = np.random.default_rng(0).uniform(-4, 4, (N, D)).astype(np.float32)
        return points, np.rint(points), M // 2
    # The bound on float32 sums stays, and must be small compared with the rounding: so the offset is no larger than
    # this.
    points = checks.offset(N, D, by=40)
    return points, to_bfloat16(points), M // 8


CASES = [(precision, isa) for precision in ("int8", "bfloat16") for isa in kernels_of(precision)]


@pytest.mark.parametrize(("precision", "isa"), CASES)
def test_rounding_that_is_not_measured_gives_wrong_answers(precision: str, isa: str) -> None:
    points, seen, least = rounded_by(precision)
    queries = seen[:M]  # exact at this precision: the whole error is in the points
    truth = brute(queries, points, K)
    assert_same_neighbors(search_seen_as(queries, points, points, isa, precision), truth)
    assert wrong_rows(search_seen_as(queries, points, seen, isa, precision), truth) > least


@pytest.mark.parametrize("isa", kernels_of("int8"))
def test_bytes_at_both_ends_of_their_range(isa: str) -> None:
    """Sums of a few products may fit in 16 bits; the largest are those of -128 with itself."""
    points = np.random.default_rng(0).choice(np.array([-128, 127], np.int8), (N, D))
    points[:M:2] = -128
    found = planned_search(points[:M], points, K, "inner_product", isa=isa, precisions=("int8", "float32"))
    assert_same_neighbors(found, brute(points[:M], points, K, "inner_product"), metric="inner_product")
