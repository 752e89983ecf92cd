"""An Index on a device contracts its points after enough searches, and its answers stay exact.

Without a GPU, Triton's interpreter takes the same paths on the CPU.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tonari
from tests.helpers.checks import Array, assert_same_neighbors, gaussian
from tests.helpers.device_rows import here, there
from tests.helpers.devices import needs_torch, on_gpu
from tonari.api.index.segments.balancing import held_bytes
from tonari.exact.cuda import tuning
from tonari.metrics.reference import brute

pytestmark = [needs_torch, pytest.mark.usefixtures("cpu_for_cuda")]
N, D, M, K, P = 140, 19, 4, 3, 5


def near_a_plane(n: int, seed: int = 0) -> Array:
    """Make rows near a three-dimensional plane."""
    plane = gaussian(3, D, 1000, np.float64)
    return (gaussian(n, 3, seed, np.float64) @ plane + 1e-2 * gaussian(n, D, seed + 1, np.float64)).astype(np.float32)


@pytest.fixture
def rented(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Set made-up costs: a second per query; pilot rows pay off from 3 M queries on, and choose M coordinates."""
    from tonari.exact.cuda import planning
    from tonari.exact.cuda.rows import form_dim

    def choose(p: int) -> None:
        monkeypatch.setattr(form_dim, "cheapest", lambda *_: p)

    monkeypatch.setattr(planning, "brute_seconds", lambda problem, isa, workers: float(problem.m))
    monkeypatch.setattr(tuning, "FORM_SECONDS", tuning.FORM_SHARE * 3 * M)
    monkeypatch.setattr(tuning, "CONTRACTED_SECONDS", 2.0)
    monkeypatch.setattr(tuning, "FORM_DIMS", (P,))
    choose(P)
    return choose


@pytest.fixture
def levels(caplog: pytest.LogCaptureFixture) -> Callable[[Callable[[], Any]], str]:
    """Return the precision levels that a search logs."""

    def of(search: Callable[[], Any]) -> str:
        caplog.clear()
        with caplog.at_level("INFO", logger="tonari"):
            search()
        return caplog.text

    return of


IN_FEWER = f"in {P} dimensions"


@pytest.mark.parametrize("metric", ["euclidean", pytest.param("cosine", marks=pytest.mark.full)])
def test_the_third_search_is_of_contracted_rows(metric: str, rented: Any, levels: Any) -> None:
    points, queries = near_a_plane(N), near_a_plane(M, 7)
    index = tonari.Index(there(points), metric=metric, method="exact")
    found: list[Any] = []
    told = [levels(lambda: found.append(here(index.search(there(queries), K)))) for _ in range(4)]
    assert [IN_FEWER in each for each in told] == [False, False, True, True]
    expected = brute(queries, points, K, metric)
    for each in found:
        assert_same_neighbors(each, expected, metric=metric)
    # Another k, short searches, and radius searches.
    assert IN_FEWER in levels(lambda: index.search(there(queries), K + 2))
    assert_same_neighbors(here(index.search(there(queries), N)), brute(queries, points, N, metric), metric=metric)
    one = queries[:1]
    assert IN_FEWER not in levels(lambda: found.append(here(index.search(there(one), K))))
    assert_same_neighbors(found[-1], brute(one, points, K, metric), metric=metric)
    limit = float(expected.distances[:, -1].max())
    within = index.radius_search(there(queries), limit)
    assert int(within.indptr[-1]) == int((brute(queries, points, N, metric).distances <= limit).sum())


def test_what_pilot_rows_refuse_is_asked_once(rented: Any, levels: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from tonari.exact.cuda.attempts import contracted as contracted_search

    rented(0)
    asked: list[int] = []
    choose = contracted_search.choose_contraction

    def counted(points: Any, form: Any, k: int, m: int, columns: int) -> Any:
        asked.append(m)
        return choose(points, form, k, m, columns)

    monkeypatch.setattr(contracted_search, "choose_contraction", counted)
    points, queries = near_a_plane(N), near_a_plane(M, 7)
    index = tonari.Index(there(points), method="exact")
    held = held_bytes(index._state.parts)
    search = functools.partial(index.search, there(queries), K)
    assert not any(IN_FEWER in levels(search) for _ in range(5))
    assert asked == [3 * M]
    assert held_bytes(index._state.parts) == held
    assert_same_neighbors(here(search()), brute(queries, points, K))


def test_a_device_that_is_full_leaves_points_as_they_are(
    rented: Any, levels: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    from tonari.exact.cuda import dispatch

    def full(*_: Any, **__: Any) -> Any:
        raise torch.cuda.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(dispatch, "contracted_points", full)
    points, queries = near_a_plane(N), near_a_plane(M, 7)
    index = tonari.Index(there(points), method="exact")
    found: list[Any] = []
    told = [levels(lambda: found.append(here(index.search(there(queries), K)))) for _ in range(4)]
    assert ["stay in all dimensions: CUDA out of memory" in each for each in told] == [False, False, True, False]
    assert_same_neighbors(found[-1], brute(queries, points, K))


def test_a_budget_and_bytes_leave_points_as_they_are(rented: Any, levels: Any) -> None:
    """A budget has no room for a second form, and bytes are exact in half precision."""
    queries = near_a_plane(M, 7)
    budgeted = tonari.Index(there(near_a_plane(N)), method="exact", memory=10**9)
    whole = tonari.Index(there(np.arange(N * D, dtype=np.uint8).reshape(N, D)), method="exact")
    for index in (budgeted, whole):
        told = [levels(lambda index=index: index.search(there(queries), K)) for _ in range(4)]
        assert not any("dimensions" in each for each in told)


@on_gpu
def test_on_a_card_at_full_size(levels: Any) -> None:
    """Test the choice of real pilot rows with real times, which no other test covers."""
    import torch

    draws = torch.Generator("cuda").manual_seed(0)
    plane = torch.randn((12, 512), generator=draws, device="cuda")

    def rows(count: int) -> Any:
        near = torch.randn((count, 12), generator=draws, device="cuda") @ plane
        return near + 1e-2 * torch.randn((count, 512), generator=draws, device="cuda")

    points, queries = rows(400_000), rows(20_000)
    index = tonari.Index(points, method="exact")
    expected = index.search(queries, 10)
    for _ in range(200):
        told = levels(lambda: index.search(queries, 10))
        if "dimensions" in told:
            break
    assert "dimensions" in told
    found = index.search(queries, 10)
    assert torch.equal(found.indices, expected.indices)
    assert torch.equal(found.distances, expected.distances)
