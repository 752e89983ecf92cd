"""The round in NumPy, compared with its definition in terms of sets, and invariants of any round."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers import checks, plans
from tonari.core.results.neighbors import Neighbors
from tonari.metrics import METRICS, reference
from tonari.nn_descent.entries import ID, MISSING, NEW
from tonari.nn_descent.reference import ReferenceBackend


def steps_for(points: Any, k: int, metric: str = "euclidean", **overrides: Any) -> ReferenceBackend:
    n, d = points.shape
    return ReferenceBackend(points, plans.descent(n, d, k, dtype=points.dtype, metric=metric, threads=1, **overrides))


def restated(steps: ReferenceBackend, entries: Any, boundary: int | None) -> tuple[list[Any], int]:
    """Return the rows of entries after a round, and the number of the first k that are new to their row, by
    definition.
    """
    plan, points = steps.plan, steps.points
    n, rows, changed = plan.n, [], 0
    reverse: dict[int, list[tuple[int, bool]]] = {v: [] for v in range(n)}
    for j in range(plan.n_hubs):
        for u in range(n):
            if entries[u, j] >= 0 and len(reverse[entries[u, j] & ID]) < plan.reverse:
                reverse[entries[u, j] & ID].append((u, bool(entries[u, j] & NEW)))
    for u in range(n):
        own = {int(e & ID): (j, bool(e & NEW)) for j, e in enumerate(entries[u]) if e >= 0}
        hubs = [(int(e & ID), bool(e & NEW)) for e in entries[u, : plan.n_hubs] if e >= 0] + reverse[u]
        others = {v for v, _ in reverse[u]}
        for h, hub_new in hubs:
            others |= {int(e & ID) for e in entries[h, : plan.neighbors_per_hub] if e >= 0 and (hub_new or e & NEW)}
        others -= {u, *own}
        if boundary is not None:
            others = {v for v in others if (u < boundary) != (v < boundary)}
        met = sorted(others, key=lambda v: v * 0x9E3779B1 % 2**32)[: plan.width]
        ids = np.array([[*own, *met]], np.int64)
        values = reference.returned(reference.values_at(points[u : u + 1], points, ids, plan.metric), steps.dtype)[0]
        best = sorted(zip(-values if steps.descending else values, ids[0].tolist(), strict=True))[: plan.list_size]
        row = []
        for _, v in best:
            column, was_new = own.get(v, (plan.n_hubs, True))
            row.append(v | NEW if was_new and column >= plan.n_hubs else v)
        changed += sum(v not in own for _, v in best[: plan.k])
        rows.append(row + [MISSING] * (plan.list_size - len(row)))
    return rows, changed


SMALL = {"list_size": 7, "n_hubs": 3, "reverse": 2, "neighbors_per_hub": 5}


@pytest.mark.parametrize("metric", ["euclidean", "inner_product", "linf"])
@pytest.mark.parametrize("boundary", [None, 13])
@pytest.mark.parametrize("width", [3, 384])
def test_a_round_is_what_its_definition_says(metric: str, boundary: int | None, width: int) -> None:
    points = checks.duplicates(60, 3) if metric == "linf" else checks.gaussian(60, 3)
    steps = steps_for(points, 4, metric, **SMALL, width=width)
    entries = steps.start("random")
    entries[5], entries[9, ::2], entries[11, 1:] = MISSING, MISSING, MISSING
    for _ in range(3):
        rows, changed = restated(steps, entries, boundary)
        made = steps.round(entries, boundary)
        assert made.entries.tolist() == rows
        assert made.changed == changed
        entries = made.entries


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("start", ["clusters", "random"])
def test_phi_never_gets_worse_and_ends_at_the_exact_answer(metric: str, start: str) -> None:
    points = np.abs(checks.gaussian(150, 4))
    steps = steps_for(points, 5, metric, n_clusters=6, n_probe=2)
    truth = reference.brute(points, points, 5, metric, self_ids=np.arange(150))
    entries, phis, made = steps.start(start), [], None
    for _ in range(8):
        made = steps.round(entries)
        entries = made.entries
        phis.append(made.phi)
        assert made.phi == pytest.approx(made.found.distances.sum(dtype=np.float64), rel=1e-12)
    signs = -1 if metric == "inner_product" else 1
    assert (np.diff(phis) * signs <= 0).all()
    assert made is not None
    assert made.changed == 0
    assert (made.found.indices == truth.indices).mean() > 0.95


def test_of_old_lists_only_those_behind_a_point_are_met() -> None:
    steps = steps_for(checks.gaussian(90, 5), 4, **SMALL)
    entries = steps.round(steps.start("random")).entries
    old = np.where(entries < 0, entries, entries & ID).astype(np.int32)
    after, behind = steps.round(old).entries, steps.reverse(old)
    fresh = [set(row[row & NEW != 0] & ID) for row in after]
    assert all(new <= set(behind[u] & ID) for u, new in enumerate(fresh))
    assert any(fresh)


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_what_holds_after_every_round(data: st.DataObject) -> None:
    n, d = data.draw(st.integers(3, 70), "n"), data.draw(st.integers(1, 6), "d")
    k = data.draw(st.integers(1, min(n - 1, 9)), "k")
    metric = data.draw(st.sampled_from(sorted(METRICS)), "metric")
    levels = data.draw(st.sampled_from([1, 2, 1000]), "levels")
    dtype = data.draw(st.sampled_from(["float32", "float64", "uint8"]), "dtype")
    rng = np.random.default_rng(data.draw(st.integers(0, 2**31), "seed"))
    points = rng.integers(0, levels, (n, d)).astype(dtype)
    boundary = data.draw(st.one_of(st.none(), st.integers(1, n - 1)), "boundary")
    steps = steps_for(points, k, metric, seed=int(rng.integers(2**32)))
    entries = steps.start(data.draw(st.sampled_from(["clusters", "random"]), "start"))
    size = steps.plan.list_size
    value = np.float64 if dtype == "float64" else np.float32
    for _ in range(2):
        made = steps.round(entries, boundary)
        ids = np.where(made.entries < 0, MISSING, made.entries & ID)
        every = reference.returned(reference.values_at(points, points, ids, metric), value)
        given_ = {"n": n, "metric": metric, "dtype": value, "self_ids": np.arange(n), "complete": False}
        checks.assert_valid_neighbors(Neighbors(every, ids), m=n, k=size, **given_)
        checks.assert_valid_neighbors(made.found, m=n, k=k, **given_)
        np.testing.assert_array_equal(made.found.indices, ids[:, :k])
        np.testing.assert_array_equal(made.found.distances, every[:, :k])
        entries = made.entries


def test_a_boundary_keeps_a_side_from_meeting_itself() -> None:
    points, boundary = checks.gaussian(80, 3), 50
    steps = steps_for(points, 5, **SMALL)
    before = steps.start("random")
    after = steps.round(before, boundary).entries
    fresh = 0
    for u, (old, row) in enumerate(zip(before, after, strict=True)):
        came = set((row[row >= 0] & ID).tolist()) - set((old[old >= 0] & ID).tolist())
        assert all((v < boundary) != (u < boundary) for v in came)
        fresh += len(came)
    assert fresh > 50


def test_clusters_start_near_the_answer() -> None:
    points = checks.tight_far_clusters(600, 8)
    steps = steps_for(points, 5, n_clusters=20, n_probe=2)
    truth = reference.brute(points, points, 5, self_ids=np.arange(600))
    shares = {}
    for start in ("clusters", "random"):
        ids = steps.start(start) & ID
        shares[start] = np.mean([np.isin(truth.indices[u], ids[u]).mean() for u in range(600)])
    assert shares["clusters"] > 0.8 > 5 * shares["random"]


def test_seeds_come_from_the_other_side() -> None:
    steps = steps_for(checks.gaussian(50, 3), 4)
    seeds = steps.seeds(9, 6)
    assert seeds.shape == (50, 6)
    present = seeds >= 0
    assert (seeds[present] & NEW != 0).all()
    ids = np.where(present, seeds & ID, MISSING)
    assert (ids[:9][present[:9]] >= 9).all()
    assert (ids[9:][present[9:]] < 9).all()
    assert present[:9].mean() > 0.8
