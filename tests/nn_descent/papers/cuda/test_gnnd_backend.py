"""Rounds of GNND on a device, compared with the plain ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.helpers import gnnd_reference as plain
from tests.helpers import plans
from tests.helpers.devices import HAS_CUDA, HAS_TORCH, needs_torch
from tests.helpers.gnnd import (
    DEVICE,
    assert_same_lists,
    integers,
    mixture,
    on_device,
)
from tests.helpers.gpu_checks import GB
from tonari.core.results.neighbors import Neighbors
from tonari.nn_descent.entries import ID, random_entries
from tonari.nn_descent.plan import DescentPlan

if HAS_TORCH:
    import torch

    from tonari.nn_descent.papers.cuda import gnnd
    from tonari.nn_descent.papers.cuda.gnnd import GnndBackend

Array = np.ndarray[Any, Any]
pytestmark = [needs_torch]
MANY = 300 if HAS_CUDA else 20  # number of rows: the interpreter takes some ten milliseconds for each


def reversed_samples(monkeypatch: pytest.MonkeyPatch) -> list[Array]:
    """Return the reverse samples of rows, which on a GPU depend on timing, so that the plain round can use them."""
    seen: list[Array] = []
    reverse = gnnd.Spinlocks.reverse

    def remember(self: Any, samples: Any, room: int) -> Any:
        found = reverse(self, samples, room)
        seen.append(found.cpu().numpy())
        return found

    monkeypatch.setattr(gnnd.Spinlocks, "reverse", remember)
    return seen


@pytest.mark.parametrize(
    ("n", "size", "products", "boundary"),
    [(1, 16, False, None), (7, 16, False, None), (MANY, 64, False, None), (MANY, 16, True, MANY // 3)],
)
def test_a_round_is_the_plain_one(
    n: int, size: int, products: bool, boundary: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    samples, segment = 8, min(size, 32)
    form, reference = integers(n, 3, products=products)
    drawn = random_entries(n, samples, 0)
    lists = gnnd.lists_of(form, on_device(drawn), size, segment)
    wanted = plain.lists_of(reference, drawn, size, segment)
    seen = reversed_samples(monkeypatch)
    for _ in range(2):
        gnnd.descend(form, lists, gnnd.Spinlocks(n, size, torch.device(DEVICE)), samples, 1 + n // 2, boundary)
        new, old, wanted = plain.own_samples(wanted, samples)
        new, old = (plain.joined(own, behind) for own, behind in zip((new, old), seen[-2:], strict=True))
        wanted = plain.round_of(reference, wanted, new, old, segment, boundary)
        assert_same_lists(lists, wanted)


def plan_for(points: Array, k: int, **given: Any) -> DescentPlan:
    n, d = points.shape
    small = {"update": "gnnd", "list_size": 16, "samples": 8}
    usual: dict[str, Any] = {"dtype": points.dtype, "devices": (DEVICE,), "free_bytes": 8 * GB}
    return plans.descent(n, d, k, **usual | small | given)


def test_a_round_counts_what_lists_did_not_have() -> None:
    points = mixture(MANY // 2)
    plan = plan_for(points, 4, block=5)
    on_backend = GnndBackend(on_device(points), plan)
    entries = on_backend.start("random")
    np.testing.assert_array_equal(entries.cpu().numpy(), random_entries(len(points), plan.samples, plan.seed))
    listed = [set((row[row >= 0] & ID).tolist()) for row in entries.cpu().numpy()]
    for _ in range(2):
        made = on_backend.round(entries)
        found = Neighbors(*(part.cpu().numpy() for part in made.found))
        rows = [row[row >= 0].tolist() for row in found.indices]
        assert made.changed == sum(len(set(ids) - had) for ids, had in zip(rows, listed, strict=True)) > 0
        assert made.phi == pytest.approx(found.distances[found.indices >= 0].sum(dtype=float), rel=1e-12)
        entries = made.entries
        listed = [set((row[row >= 0] & ID).tolist()) for row in entries.entries.cpu().numpy()]
