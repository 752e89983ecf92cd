"""Rows that are copied to a device."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tonari
from tests.helpers.devices import HAS_TORCH, on_gpu
from tests.helpers.shards import by_shards
from tonari.graph.files.directory import Manifest

if not HAS_TORCH:
    pytest.skip("torch and Triton are not installed", allow_module_level=True)

import torch


@on_gpu
@pytest.mark.parametrize("method", ["exact", "clusters", "ggm"])
def test_a_graph_on_a_device(method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    by_shards(monkeypatch, 20_000)
    rng = np.random.default_rng(0)
    whole = (rng.standard_normal((40, 16))[rng.integers(0, 40, 60_000)] * 3).astype(np.float32)
    whole += rng.standard_normal(whole.shape).astype(np.float32)
    np.save(tmp_path / "points.npy", whole)
    truth = tonari.knn_graph(whole, 10, method="exact")
    options = {} if method == "exact" else {"recall": 0.95}
    source, out = tmp_path / "points.npy", tmp_path / "graph"
    found = tonari.build_graph(source, 10, out, method=method, device="cuda", **options)
    plan = Manifest.read(tmp_path / "graph").plan
    assert plan["shards"] > 1
    if method == "exact":
        np.testing.assert_array_equal(found.indices, truth.indices)
        np.testing.assert_array_equal(found.distances, truth.distances)
    else:
        assert (found.distances <= truth.distances[:, -1:]).mean() >= 0.95
        assert (found.indices >= 0).all()


@on_gpu
@pytest.mark.parametrize("method", ["clusters", "ggm"])
def test_no_more_memory_of_a_device_is_held_than_allowed(method: str, tmp_path: Path) -> None:
    """With shards that fill the budget, and the rows of the next shard in page-locked memory."""
    rng = np.random.default_rng(0)
    whole = rng.standard_normal((500, 64), np.float32)[rng.integers(0, 500, 400_000)]
    np.save(tmp_path / "points.npy", whole + rng.standard_normal(whole.shape, np.float32) / 2)
    memory = 200_000_000
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    tonari.build_graph(
        tmp_path / "points.npy", 10, tmp_path / "graph", method=method, device="cuda", recall=0.9, memory=memory
    )
    plan = Manifest.read(tmp_path / "graph").plan
    assert plan["shards"] > 1
    assert plan["staged_bytes"] > 0
    assert memory / 4 < torch.cuda.max_memory_allocated() - before <= plan["device_bytes"] <= memory


@on_gpu
@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two CUDA devices")
@pytest.mark.parametrize("method", ["exact", "clusters", "ggm"])
def test_two_devices_build_the_same_graph(method: str, tmp_path: Path) -> None:
    whole = np.random.default_rng(1).standard_normal((40_000, 8)).astype(np.float32)
    options = {} if method == "exact" else {"recall": 0.9}
    found = [
        tonari.build_graph(
            whole, 8, tmp_path / f"graph{len(device)}", method=method, device=device, memory="300MB", **options
        )
        for device in (["cuda:0"], ["cuda:0", "cuda:1"])
    ]
    np.testing.assert_array_equal(found[0].indices, found[1].indices)
    np.testing.assert_array_equal(found[0].distances, found[1].distances)
