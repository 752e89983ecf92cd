"""The number of coordinates that pilot rows choose, and the plans that leave the choice to them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.helpers.checks import Array, gaussian
from tests.helpers.devices import HAS_TORCH, needs_torch, on_gpu
from tests.helpers.gpu_checks import DEVICE, check, plan_of, tensors
from tests.helpers.plans import exact_cuda
from tonari.exact.cuda import tuning
from tonari.exact.cuda.rows.form import make_form
from tonari.exact.cuda.rows.form_dim import cheapest, largest_form_dim

if HAS_TORCH:
    from tonari.exact.cuda.attempts import contracted as contracted_search
    from tonari.exact.cuda.rows import form_dim
    from tonari.exact.cuda.rows.form_dim import choose_contraction

pytestmark = needs_torch
GRAPH = 10**6  # number of queries for which a contraction is worthwhile, if it ever is


@pytest.fixture
def dear(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set the cost of products to that for very many points."""
    monkeypatch.setattr(form_dim, "brute_pair_seconds", lambda d: 1e-11 * d)


def few_directions(n: int, d: int, held: int = 12) -> Array:
    """Make rows in a few dimensions, with some noise in all others."""
    rows = gaussian(n, held, 0, np.float64) @ gaussian(held, d, 1000, np.float64)
    return (rows + 0.1 * gaussian(n, d, 1, np.float64)).astype(np.float32)


def chosen(points: Array, k: int = 5, m: int = GRAPH) -> int | None:
    (rows,) = tensors(DEVICE, points)
    by = choose_contraction(rows, make_form(rows, "euclidean"), k, m, rows.shape[1])
    return None if by is None else by.p


@pytest.mark.usefixtures("dear")
def test_few_directions_take_few_coordinates() -> None:
    assert chosen(few_directions(200, 80)) == 32


@pytest.mark.usefixtures("dear")
def test_isotropic_rows_take_all() -> None:
    assert chosen(gaussian(200, 80)) is None


@pytest.mark.usefixtures("dear")
def test_copies_are_no_reason_to_contract(monkeypatch: pytest.MonkeyPatch) -> None:
    """All points are at the k-th distance, so there are more candidates than a search can refine."""
    monkeypatch.setattr(tuning, "FORM_MOST_LEFT", 100)
    assert chosen(np.repeat(gaussian(1, 80), 200, axis=0)) is None


def test_few_queries_take_all() -> None:
    assert chosen(few_directions(200, 80), m=2) is None


def test_the_least_time_wins() -> None:
    few, many = [50.0, 100.0], [50_000.0, 100_000.0]
    assert cheapest([many, few, few, few], 10**6, 10**5, 960, 4, 960) == 64
    assert cheapest([few, few], 10**6, 10**5, 128, 4, 128) in (32, 64)
    assert cheapest([[50.0, 5000.0]] * 4, 10**6, 10**5, 960, 4, 960) == 0  # too wide for some rows
    assert [largest_form_dim(d) for d in (63, 64, 200, 4000)] == [0, 32, 64, tuning.FORM_DIMS[-1]]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, "pilot"),
        ({"m": 10}, "full"),  # too short for pilot rows
        ({"d": 63}, "full"),
        ({"dtype": "uint8", "query_dtype": "uint8"}, "full"),
        ({"metric": "inner_product"}, "full"),
        ({"metric": "l1"}, "full"),
        ({"route": "streamed"}, "full"),
        ({"free_bytes": 3 * 10**9}, "full"),  # less than the search may take in total
        ({"metric": "correlation"}, "pilot"),
    ],
)
def test_plans_leave_the_choice_to_pilot_rows(changes: dict[str, Any], expected: str) -> None:
    shape = {"n": 10**6, "m": 10**6, "d": 960} | {name: changes.pop(name) for name in ("m", "d") if name in changes}
    given = {"free_bytes": 80 * 10**9, "metric": "euclidean", "devices": ("cuda:0",)} | changes
    given |= {"host_points": given.get("route") == "streamed" or "free_bytes" in changes, "host_queries": True}
    for asked in ({}, {"form_dim": "pilot"}):
        plan = exact_cuda(*shape.values(), 10, **asked, **given)
        assert plan.form_dim == expected
        assert not plan.cuda_graph


@pytest.mark.usefixtures("dear")
@pytest.mark.parametrize("metric", ["euclidean", pytest.param("cosine", marks=pytest.mark.full)])
def test_whatever_is_chosen_the_answer_is_the_same(metric: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "FORM_SECONDS", 0.0)
    points = few_directions(140, 70)
    seen: list[int] = []
    choose = contracted_search.choose_contraction

    def watch(rows: Any, form: Any, k: int, m: int, columns: int) -> Any:
        by = choose(rows, form, k, GRAPH, columns)
        seen.append(0 if by is None else by.p)
        return by

    monkeypatch.setattr(contracted_search, "choose_contraction", watch)
    report = check(points[:2], points, 3, metric, form_dim="pilot", devices=(DEVICE,))
    assert seen == [32]
    assert "float16 in 32 dimensions" in report.rows_by_precision


def test_short_searches_are_not_measured() -> None:
    assert plan_of(gaussian(2, 70), gaussian(140, 70), 3, form_dim="pilot", devices=(DEVICE,)).form_dim == "full"


@on_gpu
def test_a_large_choice() -> None:
    assert chosen(few_directions(200_000, 400)) == 32
    assert chosen(gaussian(200_000, 400)) is None
