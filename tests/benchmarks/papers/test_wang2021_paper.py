"""Updates of wang2021 that only the benchmarks have, compared with plain ones; without a GPU in the interpreter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from benchmarks.papers.wang2021 import rounds as wang2021
from tests.helpers import checks
from tests.helpers import gnnd_reference as plain
from tests.helpers.devices import HAS_CUDA, HAS_TORCH, needs_torch
from tests.helpers.gnnd import (
    DEVICE,
    assert_same_lists,
    integers,
    mixture,
    on_device,
    proposals_to_few,
)
from tests.helpers.gnnd_reference import PlainForm
from tonari.metrics.reference import brute, returned, values_at
from tonari.nn_descent.entries import ID, random_entries

if HAS_TORCH:
    import torch

    from benchmarks.papers.wang2021 import updates
    from tonari.nn_descent.papers.cuda import gnnd


Array = np.ndarray[Any, Any]
pytestmark = [needs_torch, *([pytest.mark.gpu] if HAS_CUDA else [])]
each = pytest.mark.parametrize("update", ["locks", "proposals", "r2", "r1"])


def method_of(update: str, n: int, size: int) -> Any:
    return updates.UPDATES[update](n, size, torch.device(DEVICE))


@pytest.mark.parametrize("values", [4, 1 << 20])  # with ties everywhere, or with hardly any
def test_proposals_are_merged_by_rank(values: int) -> None:
    n, size, batch = 300, 64, 64 if HAS_CUDA else 16
    programs = 3000 if HAS_CUDA else 8
    keys, ids, lists, wanted = proposals_to_few(n, size, size, values, (programs, 3, batch))
    method_of("proposals", n, size).insert(lists, keys, ids)
    assert_same_lists(lists, wanted)


def test_nothing_proposed_changes_nothing() -> None:
    form, _ = integers(9)
    lists = gnnd.lists_of(form, on_device(random_entries(9, 4, 0)), 32, 32)
    before = [part.clone() for part in lists]
    keys = torch.full((2, 3, 16), -1, dtype=torch.int64, device=DEVICE)
    method_of("proposals", 9, 32).insert(lists, keys, torch.zeros((2, 3, 16), dtype=torch.int32, device=DEVICE))
    assert all(torch.equal(*parts) for parts in zip(before, lists, strict=True))


def everything(form: PlainForm, new: Array, old: Array) -> Any:
    """Return all matched pairs, as (target, id, distance)."""
    for row in range(len(new)):
        fresh, rest = (part[row][part[row] >= 0] for part in (new, old))
        for targets, others in ((fresh, fresh), (fresh, rest), (rest, fresh)):
            for target in targets.tolist():
                met = others[others != target]
                yield from (
                    (target, *pair) for pair in zip(met.tolist(), form.distances(target, met).tolist(), strict=True)
                )


@pytest.mark.parametrize(("n", "size"), [(7, 16), (200 if HAS_CUDA else 10, 16)])
def test_without_selection_all_that_is_matched_is_merged(n: int, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(updates, "TILES_BLOCK", n // 2)
    form, reference = integers(n, 4)
    drawn = random_entries(n, 8, 0)
    lists = gnnd.lists_of(form, on_device(drawn), size, size)
    start = plain.lists_of(reference, drawn, size, size)
    new, old, start = plain.own_samples(start, 8)
    gnnd.sample(lists, 8)
    rng = np.random.default_rng(1)
    reverse = [np.sort(rng.integers(-n, n, (n, 16)).clip(-1), axis=1)[:, ::-1].astype(np.int32) for _ in range(2)]
    new, old = (plain.joined(own, behind) for own, behind in zip((new, old), reverse, strict=True))
    method = method_of("r1", n, size)
    method.renew(form, lists, on_device(new), on_device(old), range(n), None)
    assert_same_lists(lists, plain.inserted(start, everything(reference, new, old), size))
    assert not method._locks.any()


# --- graphs ------------------------------------------------------------------------------------------------------

ROUNDS = 6 if HAS_CUDA else 2
# n, d, k, list_size, samples, recall: the interpreter takes a tenth of a millisecond for each step of each program.
BUILDS = [(5_000, 40, 10, 64, 32, 0.98), (600, 16, 10, 32, 16, 0.98)] if HAS_CUDA else [(24, 16, 5, 16, 8, 0.8)]


@each
@pytest.mark.parametrize("shape", BUILDS)
def test_graphs_are_valid_exact_and_ever_nearer(update: str, shape: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    n, d, k, size, samples, floor = shape
    monkeypatch.setattr(wang2021, "BLOCK", n // 2 + 7)
    points = mixture(n, d)
    before = np.full((n, size), np.inf, np.float32)

    def watch(lists: Any) -> None:
        segment = method_of(update, n, size).segment
        distances, entries = lists.distances.cpu().numpy(), lists.entries.cpu().numpy()
        segments = distances.reshape(n, -1, segment)
        np.testing.assert_array_equal(segments, np.sort(segments, axis=2))
        assert all(len(set(ids)) == len(ids) for ids in ((row[row >= 0] & ID).tolist() for row in entries))
        ranked = np.sort(distances, axis=1)
        assert (ranked <= before).all()
        before[:] = ranked

    found = wang2021.build(
        on_device(points), k, rounds=ROUNDS, update=update, list_size=size, samples=samples, watch=watch
    )
    found = type(found)(*(part.cpu().numpy() for part in found))
    checks.assert_valid_neighbors(found, m=n, n=n, k=k, self_ids=np.arange(n))
    some = np.arange(0, n, max(1, n // 500))
    values = returned(values_at(points[some], points, found.indices[some].astype(np.int64)), np.float32)
    np.testing.assert_array_equal(found.distances[some], values)
    truth = brute(points[some], points, k, self_ids=some).indices
    assert (found.indices[some][:, :, None] == truth[:, None, :]).any(axis=1).mean() > floor


def test_without_locks_a_graph_is_the_same_each_time() -> None:
    n = 5000 if HAS_CUDA else 12
    points = on_device(mixture(n))
    first, second = (wang2021.build(points, 5, rounds=2, update="proposals", list_size=16, samples=8) for _ in range(2))
    assert all(torch.equal(*parts) for parts in zip(first, second, strict=True))
