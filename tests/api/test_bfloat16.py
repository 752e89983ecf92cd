"""bfloat16 of ml_dtypes and torch: every public function returns the same bits as for the same numbers in float32."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tonari
from tests.helpers import checks
from tests.helpers.checks import Array, assert_same_neighbors
from tests.helpers.devices import HAS_TORCH, needs_torch
from tests.helpers.gpu_checks import tensor_of
from tonari.core.results.neighbors import Neighbors
from tonari.graph.knn_graph import KNNGraph
from tonari.metrics import METRICS
from tonari.metrics.reference import brute

if HAS_TORCH:
    import torch

N, M, D, K = 700, 40, 6, 5
KINDS = ["ml_dtypes", pytest.param("torch", marks=needs_torch)]

# Points that are hard to search: ties, copies, values that round in bfloat16, and values beyond the range of float16.
DATA: dict[str, Callable[[int], Array]] = {
    "gaussian": lambda n: checks.gaussian(n, D),
    "copies": lambda n: checks.duplicates(n, D),
    "few numbers": lambda n: np.random.default_rng(0).integers(0, 4, (n, D)).astype(np.float32),
    "offset": lambda n: checks.offset_1e2(n, D),
    "subnormal": lambda n: checks.gaussian(n, D) * np.float32(2.0**-128),
    "huge": lambda n: np.clip(checks.gaussian(n, D).astype(np.float64) * 1e38, -3.38e38, 3.38e38),
}


def numbers(n: int = N, data: str = "gaussian", metric: str = "euclidean") -> Array:
    rows = DATA[data](n).astype("bfloat16")
    return np.abs(rows) if METRICS[metric].nonnegative else rows


def is_refused(wide: Array, data: str, metric: str) -> bool:
    """Return whether the values overflow float32."""
    if data == "huge" and metric in ("chi2", "l1"):  # a sum of large numbers, not of their powers
        return metric == "l1"
    return checks.in_range(wide, metric) is not wide


def of_kind(kind: str, rows: Array) -> Any:
    """Return the rows as an ml_dtypes array or a tensor, as views with gaps."""
    wide = np.repeat(rows, 2, axis=0)
    wide[1::2] = np.nan
    return (wide if kind == "ml_dtypes" else tensor_of(wide))[::2]


def as_arrays(found: Neighbors, kind: str) -> Neighbors:
    """Return the lists as arrays; they have the kind that queries of this kind get."""
    assert isinstance(found.indices, np.ndarray if kind == "ml_dtypes" else torch.Tensor)
    return Neighbors(*map(np.asarray, found))


def assert_same_graph(found: KNNGraph, wanted: KNNGraph) -> None:
    for ours, theirs in ((found.indices, wanted.indices), (found.distances, wanted.distances)):
        assert np.asarray(ours).dtype == theirs.dtype
        assert np.asarray(ours).tobytes() == theirs.tobytes()


def written(out: Path) -> Neighbors:
    """Return the contents of a file."""
    return Neighbors(*map(np.array, tonari.io.read_ground_truth(out)))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("metric", METRICS)
def test_search(metric: str, data: str, kind: str) -> None:
    rows = numbers(data=data, metric=metric)
    wide = rows.astype(np.float32)
    if is_refused(wide, data, metric):
        points = of_kind(kind, rows)
        with pytest.raises(ValueError, match=r"value (over|under)flows"):
            tonari.search(points[:M], points, K, metric=metric)
        return
    truth = tonari.search(wide[:M], wide, K, metric=metric)
    assert_same_neighbors(truth, brute(wide[:M], wide, K, metric), metric=metric)
    points = of_kind(kind, rows)
    for queries in (points[:M], np.asfortranarray(rows[:M]), wide[:M]):
        found = tonari.search(queries, points, K, metric=metric)
        side = kind if queries is not wide and not isinstance(queries, np.ndarray) else "ml_dtypes"
        assert_same_neighbors(as_arrays(found, side), truth, metric=metric)
    assert_same_neighbors(tonari.search(rows[:M], wide, K, metric=metric), truth, metric=metric)
    found = tonari.Index(points, metric=metric).search(points[:M], K)
    assert_same_neighbors(as_arrays(found, kind), truth, metric=metric)


def test_float64_beside_it_is_answered_in_float64() -> None:
    rows = numbers()
    for queries, points in ((rows[:M], rows.astype(np.float64)), (rows[:M].astype(np.float64), rows)):
        for method in ("exact", "kdtree"):
            found = tonari.search(queries, points, K, method=method)
            assert_same_neighbors(found, brute(rows[:M].astype(np.float64), rows.astype(np.float64), K))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("data", DATA)
def test_by_a_tree(data: str, kind: str) -> None:
    rows = numbers(data=data)
    points, wide = of_kind(kind, rows), rows.astype(np.float32)
    for metric in ("euclidean", "sqeuclidean", "l1", "linf"):
        if is_refused(wide, data, metric):
            continue
        found = tonari.search(points[:M], points, K, metric=metric, method="kdtree")
        assert_same_neighbors(as_arrays(found, kind), brute(wide[:M], wide, K, metric), metric=metric)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("method", ["exact", "kdtree", "nn-descent"])
@pytest.mark.parametrize("include_self", [False, True])
def test_graphs(method: str, include_self: bool, kind: str) -> None:
    metrics = ("euclidean", "l1", *(() if method == "kdtree" else ("inner_product", "correlation", "chi2")))
    for metric in metrics:
        rows = numbers(metric=metric)
        points = of_kind(kind, rows)
        given: dict[str, Any] = {"metric": metric, "method": method, "include_self": include_self}
        graph, wanted = (tonari.knn_graph(x, K + 1, **given) for x in (points, rows.astype(np.float32)))
        assert_same_graph(graph, wanted)
        assert graph.recall(points, sample=99, seed=1) == wanted.recall(rows.astype(np.float32), sample=99, seed=1)


@pytest.mark.parametrize("kind", KINDS)
def test_merge_and_add(kind: str) -> None:
    rows = numbers()
    wide = rows.astype(np.float32)
    made = []
    for points in (of_kind(kind, rows), wide):
        a, b = points[:400], points[400:]
        graphs = [tonari.knn_graph(part, K) for part in (a, b)]
        made.append((tonari.merge(*graphs, a, b), graphs[0].add(a, b[:20]), graphs[0].add(a, b[:2])))
    for found, wanted in zip(*made, strict=True):
        assert_same_graph(found, wanted)


@pytest.mark.parametrize("kind", KINDS)
def test_streams(kind: str, tmp_path: Path) -> None:
    rows = numbers()
    points, wide = of_kind(kind, rows), rows.astype(np.float32)
    truth = tonari.search(wide, wide, K)
    index = tonari.Index(points)
    for queries in (points, [points[:300], points[300:300], points[300:]]):
        found = list(index.search_chunks(queries, K, **({"chunk_rows": 64} if queries is points else {})))
        joined = Neighbors(
            *(np.concatenate([np.asarray(part) for part in parts]) for parts in zip(*found, strict=True))
        )
        assert_same_neighbors(joined, truth)
    out = tonari.search_to_file(points, points, K, tmp_path / "found.ibin", chunk_rows=64)
    assert_same_neighbors(written(out), truth)


@pytest.mark.parametrize("kind", KINDS)
def test_a_stream_goes_on_where_it_was(kind: str, tmp_path: Path) -> None:
    rows = numbers()
    points = of_kind(kind, rows)

    def breaks() -> Any:
        yield points[:300]
        raise OSError("no more")

    out = tmp_path / "found.ibin"
    with pytest.raises(OSError, match="no more"):
        tonari.search_to_file(breaks(), points, K, out, rows=N)
    other = points[: N - 1]
    with pytest.raises(ValueError, match="belongs to another search: points=699"):
        tonari.search_to_file(points, other, K, out)
    changed = rows.copy()
    changed[:300] += 1
    with pytest.raises(ValueError, match=r"other queries \(their values differ\)"):
        tonari.search_to_file(of_kind(kind, changed), points, K, out)
    tonari.search_to_file(points, points, K, out)
    assert_same_neighbors(written(out), tonari.search(rows, rows, K))


@pytest.mark.parametrize("kind", KINDS)
def test_bad_rows_are_named(kind: str) -> None:
    for value in ("nan", "inf", "-inf"):
        rows = numbers()
        rows[31, 4] = rows[40, 0] = float(value)
        points = of_kind(kind, rows)
        said = rf"row 31 has a value that is not finite \({value} in column 4\)"
        for call in (
            lambda points=points: tonari.search(points, points[:9], K),
            lambda points=points: tonari.knn_graph(points, K, method="nn-descent"),
            lambda points=points: list(tonari.Index(points[:9]).search_chunks(points, K, chunk_rows=7)),
        ):
            with pytest.raises(ValueError, match=said):
                call()
    said = r"queries: row 0 has a negative value \(-0\.\d+ in column \d\); the metric compares counts"
    with pytest.raises(ValueError, match=said):
        tonari.search(of_kind(kind, numbers()), of_kind(kind, numbers(metric="chi2")), K, metric="chi2")


@pytest.mark.parametrize("kind", KINDS)
def test_plans(kind: str) -> None:
    rows = numbers()
    points = of_kind(kind, rows)
    plan = tonari.plan(N, N, D, K, dtype="bfloat16", threads=1)
    assert (plan.dtype, tonari.plan(N, N, D, K, dtype=rows.dtype, threads=1)) == ("bfloat16", plan)
    assert plan.precisions == tonari.plan(N, N, D, K, dtype="float32", threads=1).precisions
    found = tonari.search(points, points, K, plan=plan)
    assert_same_neighbors(as_arrays(found, kind), tonari.search(rows, rows, K))
    for wrong in ("float16", "float32"):
        with pytest.raises(ValueError, match=f"the plan was made for dtype='{wrong}', but this .* dtype='bfloat16'"):
            tonari.search(points, points, K, plan=tonari.plan(N, N, D, K, dtype=wrong, threads=1))
    assert "dtype=bfloat16" in repr(tonari.Index(points))


@needs_torch
def test_tensors_are_not_copied_and_sparse_ones_are_refused() -> None:
    x = torch.ones((8, 3), dtype=torch.bfloat16, requires_grad=True)
    rows = tonari.inputs.as_rows(x, "points")
    assert rows.ctypes.data == x.data_ptr()
    assert rows.nbytes == 48
    for dtype in (torch.bfloat16, torch.float32):
        with pytest.raises(TypeError, match=r"points: sparse input is not supported; use \.to_dense\(\)"):
            tonari.inputs.as_rows(torch.eye(3, dtype=dtype).to_sparse(), "points")


@pytest.mark.parametrize("kind", KINDS)
def test_no_file_has_it(kind: str, tmp_path: Path) -> None:
    for name in ("x.npy", "x.fbin", "x.fvecs", "x.npz"):
        with pytest.raises(ValueError, match=r"found bfloat16, which no format here supports, .*astype\('float32'\)"):
            tonari.io.write(tmp_path / name, of_kind(kind, numbers()))
        assert not (tmp_path / name).exists()


@pytest.mark.process
def test_plans_know_bfloat16_without_ml_dtypes() -> None:
    code = (
        "import sys, tonari; plan = tonari.plan(200_000, 1, 384, 10, dtype='bfloat16', threads=2, memory='60MB');"
        "print(plan.packs_anew, 'ml_dtypes' in sys.modules)"
    )
    environment = os.environ | {"PYTHONPATH": str(Path(tonari.__file__).parents[1])}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert done.stdout.endswith("keeps all packed False\n"), done.stdout + done.stderr
