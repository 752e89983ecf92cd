"""Copies and pickles of an Index."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tonari
from tests.helpers import checks
from tests.helpers.checks import assert_same_neighbors
from tests.helpers.devices import HAS_TORCH, needs_torch
from tonari.core.results.neighbors import Neighbors

if HAS_TORCH:
    import torch

X = checks.gaussian(20, 4)


def _pickled(index: tonari.Index) -> tonari.Index:
    copied: tonari.Index = pickle.loads(pickle.dumps(index))
    return copied


COPIES: list[Callable[[tonari.Index], tonari.Index]] = [copy.copy, copy.deepcopy, _pickled]


@pytest.mark.parametrize("made", COPIES)
@pytest.mark.parametrize("kind", ["numpy", pytest.param("torch", marks=needs_torch)])
@pytest.mark.parametrize(
    "given",
    [
        {},
        {"method": "exact", "metric": "cosine", "threads": 1},
        {"method": "kdtree", "metric": "l1"},
        {"method": "exact", "memory": "8MB"},
        {"method": "exact", "metric": "chi2", "dtype": "float64"},
        {"method": "exact", "dtype": "uint8"},
        {"method": "kdtree", "dtype": "float16"},
    ],
    ids=str,
)
def test_an_index_can_be_copied_and_pickled(given: dict[str, Any], kind: str, made: Any) -> None:
    points = np.abs(checks.gaussian(6000, 4) * 30).astype(given.get("dtype", "float32"))
    queries = points[::40] if given.get("dtype") == "uint8" else (points[::40] + 1).astype(points.dtype)
    given = {name: value for name, value in given.items() if name != "dtype"}
    index = tonari.Index(torch.from_numpy(points) if kind == "torch" else points, **given)
    expected = index.search(queries, 7)
    other = made(index)
    assert repr(other) == repr(index)
    assert (other.n, other.d, other.metric, other.method) == (index.n, index.d, index.metric, index.method)
    assert other._state.only.first.plan == index._state.only.first.plan
    assert_same_neighbors(other.search(queries, 7), expected, metric=index.metric)
    assert_same_neighbors(index.search(queries, 7), expected, metric=index.metric)
    wide = queries.astype(np.float64)
    assert_same_neighbors(other.search(wide, 7), index.search(wide, 7), metric=index.metric)
    assert_same_neighbors(made(other).search(queries, 7), expected, metric=index.metric)
    chunks = [found.indices for found in other.search_chunks(queries, 7, chunk_rows=70)]
    np.testing.assert_array_equal(np.concatenate(chunks), expected.indices)


def test_a_shallow_copy_shares_and_a_deep_one_does_not() -> None:
    index = tonari.Index(X.copy())
    shared, own, sent = copy.copy(index), copy.deepcopy(index), _pickled(index)
    assert np.shares_memory(shared.points, index.points)
    assert shared._state.only.ready == index._state.only.ready
    assert shared._state.only.ready is not index._state.only.ready
    before = index.search(X[:3], 2)
    index.points[:] = 0  # the owner of this memory must not change it
    for other in (own, sent):
        assert not np.shares_memory(other.points, index.points)
        assert_same_neighbors(other.search(X[:3], 2), before)


def test_what_is_pickled_is_hardly_more_than_the_points() -> None:
    points = checks.gaussian(30_000, 16)
    assert len(pickle.dumps(tonari.Index(points[::2]))) < points[::2].nbytes + 4000


@pytest.mark.process
def test_a_pickled_index_is_packed_for_the_machine_that_it_comes_to(tmp_path: Path) -> None:
    points, path = checks.gaussian(3000, 20), tmp_path / "index.pickle"
    index = tonari.Index(points, method="exact")
    expected = index.search(points[:9], 5)
    path.write_bytes(pickle.dumps(index))
    code = (
        "import pickle, sys, numpy; index = pickle.load(open(sys.argv[1], 'rb'));"
        "found = index.search(index.points[:9], 5); numpy.savez(sys.argv[2], *found);"
        "print(index._state.only.first.plan.isa, index._state.only.first.plan.threads)"
    )
    result = _run(code, str(path), str(tmp_path / "found.npz"), TONARI_ISA="generic", TONARI_NUM_THREADS="1")
    assert result.stdout.split() == ["generic", "1"], result.stderr
    with np.load(tmp_path / "found.npz") as found:
        assert_same_neighbors(Neighbors(found["arr_0"], found["arr_1"]), expected)


def _run(code: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    import os

    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env=os.environ | {"PYTHONPATH": str(Path(tonari.__file__).parents[1])} | environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
