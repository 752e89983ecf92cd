"""wang2021's rounds as the benchmarks have them, against plain ones; without a card in Triton's interpreter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from benchmarks.papers.wang2021 import rounds as wang2021
from tests.helpers import checks
from tests.helpers.devices import HAS_CUDA, HAS_TORCH, needs_torch
from tonari.metrics.reference import brute, returned, values_at
from tonari.nn_descent.entries import ID, MISSING, NEW

if HAS_TORCH:
    import torch

    from tonari.nn_descent.cuda.form import form_of


Array = np.ndarray[Any, Any]
Row = dict[int, float]  # id -> distance
pytestmark = [needs_torch, *([pytest.mark.gpu] if HAS_CUDA else [])]
DEVICE = "cuda:0" if HAS_CUDA else "cpu"
both = pytest.mark.parametrize("update", ["locks", "proposals"])


def mixture(n: int, d: int = 16, seed: int = 0) -> Array:
    rng = np.random.default_rng(seed)
    centres = 4 * rng.standard_normal((max(2, n // 50), d))
    return (centres[rng.integers(len(centres), size=n)] + rng.standard_normal((n, d))).astype(np.float32)


def on_device(array: Array) -> Any:
    return torch.from_numpy(np.ascontiguousarray(array)).to(DEVICE)


def method_of(update: str, n: int, size: int) -> Any:
    return wang2021.UPDATES[update](n, size, torch.device(DEVICE))


def lists_of(rows: list[Row], size: int, segment: int, *, new: bool = False) -> Any:
    """Lists that hold these neighbours."""
    entries, distances = np.full((len(rows), size), MISSING, np.int32), np.full((len(rows), size), np.inf, np.float32)
    segments = size // segment
    for row, listed in enumerate(rows):
        for number in range(segments):
            ranked = sorted((value, id) for id, value in listed.items() if id % segments == number)
            for column, (value, id) in enumerate(ranked, number * segment):
                entries[row, column], distances[row, column] = id | (NEW if new else 0), value
    return wang2021.Lists(on_device(entries), on_device(distances))


def rows_of(lists: Any, segment: int) -> list[Row]:
    """The neighbours in lists, each of which has to be in order."""
    entries, distances = (part.cpu().numpy() for part in lists)
    n, size = entries.shape
    ids = np.where(entries < 0, -1, entries & ID)
    assert (np.isinf(distances) == (ids < 0)).all()
    assert not (ids == np.arange(n)[:, None]).any()
    segments = size // segment
    assert ((ids < 0) | (ids % segments == np.arange(size) // segment)).all()
    found = []
    for row in range(n):
        listed = [(value, id) for value, id in zip(distances[row].tolist(), ids[row].tolist(), strict=True)]
        for begin in range(0, size, segment):
            part = [(value, id if id >= 0 else ID) for value, id in listed[begin : begin + segment]]
            assert part == sorted(part)
        found.append({id: value for value, id in listed if id >= 0})
        assert len(found[-1]) == (ids[row] >= 0).sum()  # none twice
    return found


def values_of(form: Any, rows: Any, others: Any) -> Array:
    """Squared distances of formed rows in float64."""
    x = form.rows.cpu().double().numpy()
    return np.square(x[rows] - x[others]).sum(axis=-1)


def slack_of(form: Any) -> float:
    """What float32 may lose of sums of squared norms."""
    return float(form.member_terms.amax()) * 1e-5


# --- sampling ----------------------------------------------------------------------------------------------------


@both
def test_the_start_is_random_and_in_order(update: str) -> None:
    points, size = mixture(64, 40), 64
    form, segment = form_of(on_device(points), "euclidean"), method_of(update, 64, size).segment
    lists = wang2021.start(form, size, segment, 16, 3)
    rows = rows_of(lists, segment)
    assert (lists.entries[lists.entries >= 0] & NEW != 0).all()
    assert np.mean([len(row) for row in rows]) > 13
    assert len({id for row in rows for id in row}) > 58
    for row, listed in enumerate(rows):
        np.testing.assert_allclose(
            list(listed.values()), values_of(form, [row], list(listed)), rtol=1e-5, atol=slack_of(form)
        )
    again, other = (wang2021.start(form, size, segment, 16, seed).entries for seed in (3, 4))
    assert torch.equal(lists.entries, again)
    assert not torch.equal(lists.entries, other)


@pytest.mark.parametrize("segment", [8, 32])
def test_samples_are_the_first_of_each_kind(segment: int) -> None:
    n, size, count = 40, 32, 8
    rng = np.random.default_rng(1)
    drawn = [rng.choice(np.delete(np.arange(n), row), rng.integers(0, 25), replace=False) for row in range(n)]
    rows = updated([{int(id): float(rng.integers(1, 6)) for id in ids} for ids in drawn], [], size, segment)
    lists = lists_of(rows, size, segment)
    fresh = rng.random((n, n)) < 0.5
    entries = lists.entries.cpu().numpy()
    entries = np.where((entries >= 0) & fresh[np.arange(n)[:, None], entries], entries | NEW, entries)
    lists = wang2021.Lists(on_device(entries), lists.distances)
    new, old = (part.cpu().numpy() for part in wang2021.sample(lists, count))
    left = lists.entries.cpu().numpy()
    for row, listed in enumerate(rows):
        ranked = [id for _, id in sorted((value, id) for id, value in listed.items())]
        expected = [[id for id in ranked if fresh[row, id] == kind][:count] for kind in (True, False)]
        assert [ids[ids >= 0].tolist() for ids in (new[row], old[row])] == expected
        still = [id for id in ranked if fresh[row, id]][count:]
        assert sorted(left[row][(left[row] >= 0) & (left[row] & NEW != 0)] & ID) == sorted(still)
    assert rows_of(lists, segment) == rows


@both
def test_those_that_sample_a_point_follow_its_own_samples(update: str) -> None:
    n, count = 50, 8
    own = np.full((n, count), MISSING, np.int32)
    rng = np.random.default_rng(2)
    for row in range(n):
        wanted = rng.choice(np.delete(np.arange(n // 2), row) if row < n // 2 else n // 2, rng.integers(1, 9), False)
        own[row, : len(wanted)] = wanted
    reverse = method_of(update, n, 32).reverse(on_device(own), 2 * count)
    joined = wang2021.join(on_device(own), reverse).cpu().numpy()
    for point in range(n):
        behind = set(np.flatnonzero((own == point).any(axis=1)).tolist())
        found = reverse[point].cpu().numpy()
        found = found[found >= 0].tolist()
        assert len(found) == len(set(found)) == min(len(behind), 2 * count)
        assert set(found) <= behind
        listed = own[point][own[point] >= 0].tolist()
        expected = list(dict.fromkeys([*listed, *found][: 2 * count]))
        assert joined[point][joined[point] >= 0].tolist() == expected


# --- matching ----------------------------------------------------------------------------------------------------


def nearest(form: Any, target: int, others: list[int]) -> int | None:
    """The nearest of some others."""
    others = [id for id in others if id != target]
    return others[int(values_of(form, [target], others).argmin())] if target >= 0 and others else None


@pytest.mark.parametrize(("d", "segment"), [(5, 32), (130, 64)])
def test_each_sample_is_proposed_its_nearest_of_each_kind(d: int, segment: int) -> None:
    n, tile, size = 60, 16, 64
    rng = np.random.default_rng(4)
    form = form_of(on_device(checks.gaussian(n, d)), "euclidean")
    new, old = (np.full((n, tile), MISSING, np.int32) for _ in range(2))
    for row in range(n):
        for part, fewest in ((new, 0 if row else 5), (old, 0)):
            drawn = rng.choice(n, rng.integers(fewest, tile + 1), False)
            part[row, rng.permutation(tile)[: len(drawn)]] = drawn
    new[7] = MISSING
    # Lists that refuse about half of what they are proposed.
    limits = rng.choice([np.inf, float(values_of(form, rng.integers(n, size=99), rng.integers(n, size=99)).mean())], n)
    distances = on_device(np.repeat(limits[:, None], size, axis=1).astype(np.float32))
    lists = wang2021.Lists(torch.full_like(distances, MISSING, dtype=torch.int32), distances)
    keys = torch.zeros((n - 3, 3, tile), dtype=torch.int64, device=DEVICE)
    ids = torch.zeros((n - 3, 3, tile), dtype=torch.int32, device=DEVICE)
    wang2021.cross(form, on_device(new), on_device(old), lists, segment, 3, keys, ids)
    keys, ids, proposed = keys.cpu().numpy(), ids.cpu().numpy(), 0
    for row in range(3, n):
        kinds = new[row], old[row]
        listed = [[int(id) for id in kind if id >= 0] for kind in kinds]
        for number, (targets, others) in enumerate([(0, 0), (0, 1), (1, 0)]):
            for slot, target in enumerate(kinds[targets].tolist()):
                key, wanted = int(keys[row - 3, number, slot]), nearest(form, target, listed[others])
                value = np.inf if wanted is None else float(values_of(form, target, wanted))
                assert (key >= 0) == (wanted is not None and value <= limits[target])
                if key >= 0:
                    proposed += 1
                    assert (key >> 32, ids[row - 3, number, slot]) == (target, wanted)
                    found = np.int32(key & 0xFFFFFFFF).view(np.float32)
                    np.testing.assert_allclose(found, value, rtol=1e-5, atol=slack_of(form))
    assert 0.2 < proposed / (3 * n * tile) < 0.8


# --- updates -----------------------------------------------------------------------------------------------------


def updated(rows: list[Row], proposals: list[tuple[int, int, float]], size: int, segment: int) -> list[Row]:
    """What lists hold after proposals (target, id, distance): of each segment the first by (distance, id)."""
    every = [dict(row) for row in rows]
    for target, id, distance in proposals:
        every[target][id] = distance
    segments = size // segment
    found = []
    for row in every:
        ranked = sorted(row, key=lambda id: (row[id], id))
        kept = [id for number in range(segments) for id in [id for id in ranked if id % segments == number][:segment]]
        found.append({id: row[id] for id in kept})
    return found


@both
@pytest.mark.parametrize("values", [4, 1 << 20])  # with ties everywhere, or hardly any
def test_lists_keep_the_nearest_of_what_is_proposed(update: str, values: int) -> None:
    n, size, batch = 300, 64, 64 if HAS_CUDA else 16
    programs = 3000 if HAS_CUDA else 8
    rng = np.random.default_rng(5)
    # Few targets, so that all programs want the same locks; two of them get fewer proposals than there is room for.
    distances = 1 + rng.integers(0, values, (8, n)).astype(np.float32)
    start = [rng.choice(np.arange(8, n), rng.integers(0, size // 2), False) for _ in range(8)]
    rows = [{int(id): float(distances[row, id]) for id in ids} for row, ids in enumerate(start)] + [{}] * (n - 8)
    segment = method_of(update, n, size).segment
    rows = updated(rows, [], size, segment)
    lists = lists_of(rows, size, segment)
    targets = rng.choice(8, (programs, 3, batch), p=[0.005, 0.01, 0.05, 0.1, 0.2, 0.2, 0.235, 0.2])
    ids = rng.integers(8, n, targets.shape).astype(np.int32)
    found = distances[targets, ids]
    keys = targets.astype(np.int64) << 32 | found.view(np.int32)
    none = rng.random(keys.shape) < 0.1
    method_of(update, n, size).update(lists, on_device(np.where(none, -1, keys)), on_device(ids))
    proposals = list(zip(targets[~none].tolist(), ids[~none].tolist(), found[~none].tolist(), strict=True))
    assert rows_of(lists, segment) == updated(rows, proposals, size, segment)
    entries = lists.entries.cpu().numpy()
    for row in range(8):
        fresh = entries[row][(entries[row] >= 0) & (entries[row] & NEW != 0)] & ID
        assert set(fresh.tolist()) == set(rows_of(lists, segment)[row]) - set(rows[row])


@both
def test_nothing_proposed_changes_nothing(update: str) -> None:
    method = method_of(update, 9, 32)
    lists = lists_of([{(row + 1) % 9: 2.0} for row in range(9)], 32, method.segment)
    before = [part.clone() for part in lists]
    keys = torch.full((2, 3, 16), -1, dtype=torch.int64, device=DEVICE)
    method.update(lists, keys, torch.zeros((2, 3, 16), dtype=torch.int32, device=DEVICE))
    assert all(torch.equal(*parts) for parts in zip(before, lists, strict=True))


# --- graphs ------------------------------------------------------------------------------------------------------

ROUNDS = 6 if HAS_CUDA else 2
# n, d, k, list_size, samples, recall: the interpreter takes a tenth of a millisecond for each step of each program.
BUILDS = [(20_000, 40, 10, 64, 32, 0.98), (600, 16, 10, 32, 16, 0.98)] if HAS_CUDA else [(32, 16, 5, 16, 8, 0.85)]


@both
@pytest.mark.parametrize("shape", BUILDS)
def test_graphs_are_valid_exact_and_ever_nearer(update: str, shape: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    n, d, k, size, samples, floor = shape
    monkeypatch.setattr(wang2021, "SLICE", n // 2 + 7)
    points = mixture(n, d)
    before = np.full((n, size), np.inf, np.float32)

    def watch(lists: Any) -> None:
        rows_of(lists, method_of(update, n, size).segment)
        ranked = np.sort(lists.distances.cpu().numpy(), axis=1)
        assert (ranked <= before).all()
        assert ranked[np.isfinite(before)].sum() < before[np.isfinite(before)].sum() or np.isinf(before).all()
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
    n = 5000 if HAS_CUDA else 16
    points = on_device(mixture(n))
    first, second = (wang2021.build(points, 5, rounds=2, update="proposals", list_size=16, samples=8) for _ in range(2))
    assert all(torch.equal(*parts) for parts in zip(first, second, strict=True))


@both
@pytest.mark.parametrize("kind", ["few", "equal"])
def test_degenerate_points(update: str, kind: str) -> None:
    points = checks.gaussian(9, 3) if kind == "few" else np.ones((14, 3), np.float32)
    n, k = len(points), 5
    found = wang2021.build(on_device(points), k, rounds=3, update=update, list_size=16, samples=8)
    found = type(found)(*(part.cpu().numpy() for part in found))
    checks.assert_valid_neighbors(found, m=n, n=n, k=k, self_ids=np.arange(n))
    if kind == "few":  # all have met
        np.testing.assert_array_equal(found.indices, brute(points, points, k, self_ids=np.arange(n)).indices)
