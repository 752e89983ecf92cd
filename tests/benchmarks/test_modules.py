"""The modules for ann-benchmarks and big-ann-benchmarks, on small files, with stand-ins for their base classes."""

from __future__ import annotations

import importlib.util
import sys
import types
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from tonari.metrics.reference import brute

MODULES = Path(__file__).parents[2] / "benchmarks" / "modules"


def _load(monkeypatch: pytest.MonkeyPatch, path: str, imported: dict[str, dict[str, Any]]) -> Any:
    """Load the module with `imported` in place of the modules that it imports names from."""
    for name, contents in imported.items():
        for part in range(name.count(".") + 1):
            parent = ".".join(name.split(".")[: part + 1])
            monkeypatch.setitem(sys.modules, parent, sys.modules.get(parent) or types.ModuleType(parent))
        vars(sys.modules[name]).update(contents)
    specification = importlib.util.spec_from_file_location("module", MODULES / path)
    assert specification is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)  # type: ignore[union-attr]
    return module


class BaseANN:
    """Has those attributes of the base classes of both benchmarks that the modules use."""

    res: Any

    def get_batch_results(self) -> Any:
        return self.res

    def get_results(self) -> Any:
        return self.res

    def get_range_results(self) -> Any:
        return self.res

    def __str__(self) -> str:
        return self.name  # type: ignore[attr-defined, no-any-return]


@pytest.fixture
def sides() -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    return rng.standard_normal((600, 12), dtype=np.float32), rng.standard_normal((40, 12), dtype=np.float32)


@pytest.mark.parametrize(("distance", "metric"), [("euclidean", "euclidean"), ("angular", "cosine")])
def test_ann_benchmarks(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, sides: tuple[Any, Any], distance: str, metric: str
) -> None:
    points, queries = sides
    truth = brute(queries, points, 10, metric)
    with h5py.File(tmp_path / "small.hdf5", "w") as file:
        file.attrs["distance"] = distance
        for name, rows in (("train", points), ("test", queries), ("neighbors", truth.indices)):
            file[name] = rows
    module = _load(
        monkeypatch, "ann_benchmarks/module.py", {"ann_benchmarks.algorithms.base.module": {"BaseANN": BaseANN}}
    )
    with h5py.File(tmp_path / "small.hdf5") as file:
        algorithm = module.Tonari(file.attrs["distance"])
        algorithm.fit(np.array(file["train"]))
        one_by_one = [algorithm.query(query, 10) for query in np.array(file["test"])]
        algorithm.batch_query(np.array(file["test"]), 10)
        expected = np.array(file["neighbors"])
    assert str(algorithm) == f"tonari({distance})"
    np.testing.assert_array_equal(one_by_one, expected)
    np.testing.assert_array_equal(algorithm.get_batch_results(), expected)
    with pytest.raises(NotImplementedError, match="hamming"):
        module.Tonari("hamming")


@pytest.mark.parametrize(
    ("distance", "metric"), [("euclidean", "sqeuclidean"), ("ip", "inner_product"), ("angular", "cosine")]
)
def test_big_ann_benchmarks(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, sides: tuple[Any, Any], distance: str, metric: str
) -> None:
    points, queries = sides
    header = np.array(points.shape, np.uint32)
    (tmp_path / "base.fbin").write_bytes(header.tobytes() + points.tobytes())

    class Small:
        def get_dataset(self) -> Any:
            n, d = np.fromfile(tmp_path / "base.fbin", np.uint32, 2)
            return np.memmap(tmp_path / "base.fbin", np.float32, "r", offset=8, shape=(n, d))

    imported = {"benchmark.algorithms.base": {"BaseANN": BaseANN}, "benchmark.datasets": {"DATASETS": {"small": Small}}}
    module = _load(monkeypatch, "big_ann/tonari_exact.py", imported)
    algorithm = module.TonariExact(distance, {})
    assert not algorithm.load_index("small")
    algorithm.fit("small")
    algorithm.query(queries, 10)
    truth = brute(queries, points, len(points), metric)
    np.testing.assert_array_equal(algorithm.get_results(), truth.indices[:, :10])

    limit = float(np.median(truth.distances[:, 9]))
    algorithm.range_query(queries, limit)
    bounds, distances, indices = algorithm.get_range_results()
    inside = truth.distances >= limit if distance == "ip" else truth.distances <= limit
    np.testing.assert_array_equal(np.diff(bounds), inside.sum(1))
    np.testing.assert_array_equal(indices, truth.indices[inside])
    np.testing.assert_array_equal(distances, truth.distances[inside])
    with pytest.raises(ValueError, match="nothing to set"):
        module.TonariExact(distance, {"ef": 5})
