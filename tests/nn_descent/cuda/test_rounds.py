"""NN-Descent on CUDA, step by step, compared with the plain one; without a GPU in Triton's interpreter."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import tonari
from tests.helpers import checks, plans
from tests.helpers.devices import HAS_CUDA, HAS_TORCH, needs_torch
from tests.helpers.gpu_checks import GB
from tonari.metrics import METRICS
from tonari.nn_descent.entries import MISSING

if HAS_TORCH:
    import torch

    from tests.helpers.descent_on_cuda import DEVICE, steps_for, values_for

Array = np.ndarray[Any, Any]
MANY = 400 if HAS_CUDA else 24  # number of points: the interpreter takes a second for every few dozen
pytestmark = [needs_torch, pytest.mark.usefixtures("plain_exact_neighbors")]


def check_rounds(
    points: Array, k: int, metric: str = "euclidean", *, rounds: int = 2, boundary: int | None = None, **choices: Any
) -> None:
    """Compare rounds from a random start, bit for bit."""
    on_card, plain = steps_for(points, k, metric, **choices)
    entries, expected = on_card.start("random"), plain.start("random")
    for _ in range(rounds):
        made, wanted = on_card.round(entries, boundary), plain.round(expected, boundary)
        entries, expected = made.entries, wanted.entries
        np.testing.assert_array_equal(entries.cpu().numpy(), expected)
        np.testing.assert_array_equal(made.found.indices.cpu().numpy(), wanted.found.indices)
        assert made.found.distances.cpu().numpy().tobytes() == wanted.found.distances.tobytes()
        assert made.changed == wanted.changed
        assert made.phi == pytest.approx(wanted.phi, rel=1e-12)


ROUNDED = sorted(METRICS) if HAS_CUDA else ["correlation", "inner_product", *checks.ELEMENTWISE]


@pytest.mark.parametrize("metric", ROUNDED)
def test_rounds_of_every_metric(metric: str) -> None:
    check_rounds(
        values_for(metric, MANY, 9), 5, metric, list_size=8, n_hubs=4, reverse=3, neighbors_per_hub=6, width=16
    )


@pytest.mark.parametrize(
    "dtype", ["float16", "bfloat16", "float64", "uint8", "int8"] if HAS_CUDA else ["bfloat16", "float64", "uint8"]
)
def test_rounds_of_every_dtype(dtype: str) -> None:
    rows = checks.gaussian(MANY, 6) * (30 if "int" in dtype else 1)
    check_rounds(
        np.abs(rows).astype(dtype) if dtype == "uint8" else rows.astype(dtype),
        4,
        list_size=8,
        n_hubs=4,
        reverse=3,
        neighbors_per_hub=8,
        width=16,
    )


@pytest.mark.parametrize(("n", "k"), [(2, 1), (7, 6), pytest.param(33, 10, marks=pytest.mark.full)])
def test_rounds_of_few_points(n: int, k: int) -> None:
    check_rounds(checks.gaussian(n, 3), k)


@pytest.mark.parametrize("choices", [
    {"n_hubs": 3, "reverse": 2, "neighbors_per_hub": 5, "width": 7},
    {"n_hubs": 1, "reverse": 0, "neighbors_per_hub": 1, "width": 1},
    *([{"list_size": 20, "n_hubs": 20, "neighbors_per_hub": 20}] if HAS_CUDA else []),
    pytest.param({"list_size": 5, "n_hubs": 5, "reverse": 30}, marks=pytest.mark.full),
])  # fmt: skip
def test_rounds_of_other_shapes(choices: dict[str, int]) -> None:
    check_rounds(checks.gaussian(MANY, 4), 5, **choices)


@pytest.mark.parametrize("points", [
    pytest.param(np.zeros((MANY, 3), np.float32), marks=pytest.mark.full),
    np.repeat(checks.gaussian(4, 3), MANY // 4, axis=0),
    np.concatenate([checks.gaussian(12, 2), checks.gaussian(12, 2, 1) * 1e-3 + 1e6]).astype(np.float32),
    pytest.param(np.arange(MANY, dtype=np.float32)[:, None], marks=pytest.mark.full),
], ids=["all equal", "copies", "far apart", "a line"])  # fmt: skip
def test_rounds_of_degenerate_points(points: Array) -> None:
    check_rounds(points, 7, list_size=10, n_hubs=5, width=16)


@pytest.mark.full
def test_a_light_round() -> None:
    on_card, plain = steps_for(checks.gaussian(MANY, 4), 5, list_size=12, n_hubs=7, reverse=6, neighbors_per_hub=9)
    made = on_card.round(on_card.start("random"), light=True)
    wanted = plain.round(plain.start("random"), light=True)
    np.testing.assert_array_equal(made.entries.cpu().numpy(), wanted.entries)
    assert made.changed == wanted.changed


def test_rounds_across_a_boundary() -> None:
    cut = MANY * 5 // 8
    points = checks.gaussian(MANY, 4)
    check_rounds(points, 5, boundary=cut, list_size=10, n_hubs=5, width=16)
    on_card, _ = steps_for(points, 5, list_size=10)
    nobody = torch.full((MANY, on_card.plan.list_size), MISSING, dtype=torch.int32, device=DEVICE)
    made = on_card.round(on_card.joined_entries(on_card.seeds(cut, 6), nobody), cut)
    ids = made.found.indices.cpu().numpy()
    sides = (ids < cut) == (np.arange(MANY) < cut)[:, None]
    assert (ids >= 0).any()
    assert not sides[ids >= 0].any()


@pytest.mark.skipif(not HAS_CUDA, reason="only a card counts its memory")
@pytest.mark.parametrize(
    ("n", "d", "k", "metric"),
    [(100_000, 64, 10, "euclidean"), (50_000, 300, 32, "inner_product"), (60_000, 20, 16, "chi2"), (500, 7, 5, "l1")],
)
def test_no_more_memory_is_held_than_planned(n: int, d: int, k: int, metric: str) -> None:
    points = torch.rand((n, d), generator=torch.Generator(DEVICE).manual_seed(0), device=DEVICE)
    plan = plans.descent(
        n, d, k, dtype="float32", metric=metric, devices=(DEVICE,), free_bytes=8 * GB, host_points=False, rounds=3
    )
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # recall on uniform points
        graph = tonari.knn_graph(points, k, metric=metric, method="nn-descent", plan=plan)
    assert torch.cuda.max_memory_allocated() - before <= plan.total_bytes
    assert graph.n == n
