"""Calls without queries return empty answers with the dtypes, library and device of answers for one query."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import ml_dtypes  # bfloat16 for NumPy
import numpy as np
import pytest
from click.testing import CliRunner

import tonari
from tests.helpers.devices import needs_torch, on_gpu
from tests.helpers.npz import arrays_of
from tonari import cli
from tonari.api.index.segments.segment import Segment
from tonari.core.errors import Unsupported
from tonari.metrics import BIT_METRICS, METRICS, get_metric

N, D, K = 40, 2, 3
DTYPES = [np.float32, np.float64, np.float16, np.uint8, ml_dtypes.bfloat16]


def rows(dtype: Any = np.float32, metric: str = "euclidean") -> Any:
    values = np.random.default_rng(0).random((N, D))
    if metric in BIT_METRICS:
        return (255 * values).astype(np.uint8)
    return (100 * values if dtype == np.uint8 else values).astype(dtype)


def radius(metric: str) -> dict[str, float]:
    return {"min_similarity": 0.1} if get_metric(metric).descending else {"radius": 0.5}


def check_alike(none: Any, one: Any) -> None:
    """Check that the answers for no queries equal those for one query without its row."""
    nones, ones = (found if isinstance(found, tuple) else (found,) for found in (none, one))
    for name, found, like in zip(getattr(none, "_fields", ("counts",)), nones, ones, strict=True):
        assert type(found) is type(like)
        assert found.dtype == like.dtype
        assert str(getattr(found, "device", "")) == str(getattr(like, "device", ""))
        assert tuple(found.shape) == ((1,) if name == "indptr" else (0, *like.shape[1:]))
    if isinstance(none, tonari.RadiusNeighbors):
        assert none.indptr.tolist() == [0]


def check_verbs(points: Any, metric: str, **given: Any) -> None:
    index = tonari.Index(points, metric=metric, **given)
    changed = tonari.Index(points[: N - 3], metric=metric, **given)
    changed.add(points[N - 3 :])
    within: dict[str, Any] = radius(metric)
    options = {"metric": metric} | given
    verbs: list[Any] = [lambda queries: tonari.search(queries, points, K, **options)]
    verbs += [
        lambda queries, most=most: tonari.radius_search(queries, points, max_neighbors=most, **within, **options)
        for most in (None, 2, 100)
    ]
    verbs += [lambda queries: tonari.radius_count(queries, points, **within, **options)]
    for held in (index, changed):
        verbs += [lambda queries, held=held: held.search(queries, K)]
        verbs += [
            lambda queries, held=held, most=most: held.radius_search(queries, max_neighbors=most, **within)
            for most in (None, 2, 100)
        ]
        verbs += [lambda queries, held=held: held.radius_count(queries, **within)]
    for verb in verbs:
        check_alike(verb(points[:0]), verb(points[:1]))


@pytest.mark.parametrize("metric", [*METRICS, *BIT_METRICS, "minkowski:3", "haversine"])
def test_every_metric(metric: str) -> None:
    check_verbs(rows(np.float64, metric), metric)


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype(dtype: Any) -> None:
    check_verbs(rows(dtype), "euclidean")


def test_weights() -> None:
    check_verbs(rows(), "l1", weights=[1.0, 0.5])


@needs_torch
@pytest.mark.parametrize("metric", ["euclidean", "inner_product", "minkowski:3", "hamming"])
def test_tensors(metric: str) -> None:
    import torch

    check_verbs(torch.from_numpy(rows(np.float64, metric)), metric)


@on_gpu
@pytest.mark.parametrize("metric", ["euclidean", "cosine", "l1", "inner_product", "minkowski:3", "hamming"])
def test_tensors_on_cuda(metric: str) -> None:
    import torch

    check_verbs(torch.from_numpy(rows(np.float32, metric)).cuda(), metric)


@needs_torch
def test_gradients_of_nothing_are_zero() -> None:
    import torch

    points = torch.from_numpy(rows()).requires_grad_()
    queries = points.detach()[:0].clone().requires_grad_()
    found = tonari.search(queries, points, K, differentiable=True)
    found.distances.sum().backward()
    assert queries.grad is not None
    assert tuple(queries.grad.shape) == (0, D)
    assert points.grad is not None
    assert not points.grad.any()


RULES: dict[str, dict[str, Any]] = {
    "one mask": {"where": np.arange(N) % 2 == 0},
    "no point": {"where": np.zeros(N, bool)},
    "a mask each": {"where": np.zeros((0, N), bool)},
    "excluded": {"exclude": []},
    "excluded, compressed": {"exclude": (np.zeros(1, np.int64), np.zeros(0, np.int64))},
    "groups": {"query_groups": np.zeros(0, np.int64), "point_groups": np.arange(N) % 3},
    "other groups": {"query_groups": np.zeros(0, np.int64), "point_groups": np.arange(N) % 3, "groups": "other"},
}


@pytest.mark.parametrize("rule", RULES)
def test_rules(rule: str) -> None:
    points, given = rows(), RULES[rule]
    index, none = tonari.Index(points), points[:0]
    plain = tonari.search(points[:1], points, K)
    check_alike(tonari.search(none, points, K, **given), plain)
    check_alike(index.search(none, K, **given), plain)
    within = tonari.radius_search(points[:1], points, 0.5)
    check_alike(tonari.radius_search(none, points, 0.5, **given), within)
    check_alike(index.radius_search(none, 0.5, **given), within)
    assert tonari.radius_count(none, points, 0.5, **given).shape == (0,)
    assert index.radius_count(none, 0.5, **given).shape == (0,)


def test_rules_are_checked() -> None:
    points = rows()
    for bad in ({"where": np.ones(N - 1, bool)}, {"exclude": [[1]]}, {"query_groups": np.zeros(0, np.int64)}):
        for verb in (tonari.search, tonari.radius_search):
            with pytest.raises(ValueError, match=next(iter(bad))):
                verb(points[:0], points, 1, **bad)
        with pytest.raises(ValueError, match=next(iter(bad))):
            tonari.Index(points).search(points[:0], 1, **bad)


def test_a_radius_for_each() -> None:
    points = rows()
    assert len(tonari.radius_search(points[:0], points, np.zeros(0)).indices) == 0
    with pytest.raises(ValueError, match="one for each of 0 queries"):
        tonari.radius_search(points[:0], points, np.zeros(1))


def test_other_arguments_are_checked() -> None:
    points = rows()
    for options, kind, said in (
        ({"k": 0}, ValueError, "k"),
        ({"k": N + 1}, ValueError, f"the largest k is {N}"),
        ({"threads": 0}, ValueError, "threads"),
        ({"method": "kdtree", "metric": "cosine"}, Unsupported, "kdtree"),
        ({"method": "best"}, ValueError, "best"),
    ):
        with pytest.raises(kind, match=said):
            tonari.search(points[:0], points, **{"k": K} | options)
    with pytest.raises(ValueError, match="the same number of columns"):
        tonari.search(np.zeros((0, D + 1), np.float32), points, K)
    with pytest.raises(ValueError, match="the same number of columns"):
        tonari.Index(points).search(np.zeros((0, D + 1), np.float32), K)
    with pytest.raises(ValueError, match=r"queries: shape \(0, 0\) is empty, expected at least one column"):
        tonari.search(points[:0, :0], points, K)


def test_points_must_be_there() -> None:
    points = rows()
    verbs: tuple[Any, ...] = (
        lambda none: tonari.search(points, none, K),
        lambda none: tonari.search(none, none, K),
        lambda none: tonari.radius_search(none, none, 1.0),
        lambda none: tonari.Index(none),
        lambda none: tonari.knn_graph(none, K),
        lambda none: tonari.radius_graph(none, 1.0),
        lambda none: tonari.pairs(none, 1.0),
        lambda none: tonari.kth_distance(none, 1),
    )
    for verb in verbs:
        with pytest.raises(ValueError, match=rf"points: shape \(0, {D}\) is empty, expected at least one row"):
            verb(points[:0])


def test_nothing_is_prepared(monkeypatch: pytest.MonkeyPatch) -> None:
    """No method plans or packs for a call without queries."""
    points = rows()

    def refuse(*_: Any, **__: Any) -> Any:
        raise AssertionError("planned")

    for name in ("decide", "decide_within"):
        monkeypatch.setattr(sys.modules["tonari.methods.places.points"], name, refuse)
    tonari.search(points[:0], points, K)
    tonari.radius_search(points[:0], points, 1.0)
    tonari.radius_search(points[:0], points, 1.0, max_neighbors=2)
    tonari.radius_count(points[:0], points, 1.0)
    index = tonari.Index(points)
    monkeypatch.setattr(Segment, "decided", refuse)
    for module, name in (("filters.searches.asking", "Scope"), ("api.wrappers.filtered", "nearest_allowed")):
        monkeypatch.setattr(sys.modules[f"tonari.{module}"], name, refuse)
    for rule in ({}, {"where": np.ones(N, bool)}):
        tonari.search(points[:0], points, K, **rule)
        index.search(points[:0], K, **rule)
        index.radius_search(points[:0], 1.0, **rule)
        index.radius_search(points[:0], 1.0, max_neighbors=2, **rule)
        index.radius_count(points[:0], 1.0, **rule)


def test_streams(tmp_path: Path) -> None:
    points = rows()
    for number, none in enumerate((points[:0], [], [points[:0], points[:0]])):
        out = tonari.search_to_file(none, points, K, tmp_path / f"{number}.ibin")
        found = tonari.io.read_ground_truth(out)
        assert found.indices.shape == found.distances.shape == (0, K)
        assert [path.name for path in tmp_path.glob(f"{number}*")] == [out.name]
    index = tonari.Index(points)
    (found,) = index.search_chunks(points[:0], K)
    check_alike(found, index.search(points[:1], K))
    (within,) = index.radius_chunks(points[:0], 0.5)
    check_alike(within, index.radius_search(points[:1], 0.5))
    with pytest.raises(ValueError, match=f"expected {D} columns like the points"):
        list(index.search_chunks(np.zeros((0, D + 1), np.float32), K))


def test_lookalikes() -> None:
    from tonari.compat import faiss, scipy

    points = rows()
    index = faiss.IndexFlatL2(D)
    index.add(points)
    distances, indices = index.search(points[:0], K)
    assert distances.shape == indices.shape == (0, K)
    assert (distances.dtype, indices.dtype) == (np.float32, np.int64)
    limits, *found = index.range_search(points[:0], 0.5)
    assert limits.tolist() == [0]
    assert all(len(part) == 0 for part in found)
    distances, indices = scipy.KDTree(points).query(points[:0].astype(np.float64), K)
    assert distances.shape == indices.shape == (0, K)


def save_npy(path: Path, points: Any) -> None:
    np.save(path, points)


def save_npz(path: Path, points: Any) -> None:
    np.savez(path, points)


def save_hdf5(path: Path, points: Any) -> None:
    h5py = pytest.importorskip("h5py")
    with h5py.File(path, "w") as file:
        file["train"] = file["test"] = points


def save_fbin(path: Path, points: Any) -> None:
    path.write_bytes(np.array(points.shape, "<u4").tobytes() + points.tobytes())


def save_csv(path: Path, points: Any) -> None:
    path.write_text("\n".join(["a,b", *(",".join(map(str, row)) for row in points.tolist()), ""]))


def save_parquet(path: Path, points: Any) -> None:
    pytest.importorskip("pyarrow")
    from pyarrow import parquet, table

    parquet.write_table(table({name: points[:, at] for at, name in enumerate("ab")}), path)


FILES = {
    ".npy": save_npy,
    ".npz": save_npz,
    ".h5": save_hdf5,
    ".fbin": save_fbin,
    ".csv": save_csv,
    ".parquet": save_parquet,
}


@pytest.mark.parametrize("suffix", FILES)
def test_files(suffix: str, tmp_path: Path) -> None:
    points, none, some = rows(), tmp_path / f"none{suffix}", tmp_path / f"some{suffix}"
    FILES[suffix](none, points[:0])
    FILES[suffix](some, points)
    queries, like = tonari.io.read(none), tonari.io.read(some)
    assert queries.shape == (0, D)
    assert queries.dtype == like.dtype
    found = tonari.io.describe(none)
    assert (found.rows, found.columns, found.dtype) == (0, D, str(like.dtype))
    check_alike(tonari.search(queries, like, K), tonari.search(like[:1], like, K))
    found = tonari.io.read_ground_truth(tonari.search_to_file(none, some, K, tmp_path / "out.ibin"))
    assert found.indices.shape == found.distances.shape == (0, K)
    with pytest.raises(ValueError, match=rf"points: shape \(0, {D}\) is empty, expected at least one row"):
        tonari.search_to_file(some, none, K, tmp_path / "other.ibin")


@pytest.mark.parametrize("suffix", [".npy", ".csv"])
def test_commands(suffix: str, tmp_path: Path) -> None:
    points, none, some = rows(), tmp_path / f"none{suffix}", tmp_path / f"some{suffix}"
    FILES[suffix](none, points[:0])
    FILES[suffix](some, points)

    def run(*arguments: Any) -> Any:
        return CliRunner().invoke(cli.main, list(map(str, arguments)))

    for name, more in (("a.npz", ()), ("a.ibin", ()), ("a.csv", ()), ("b.npz", ("--radius", "0.5"))):
        done = run("search", some, none, *(() if more else ("-k", K)), *more, "-o", tmp_path / name)
        assert done.exit_code == 0, done.output
        assert f"read {none}, 0 x {D}" in done.output
    for name in ("a.npz", "a.ibin"):
        found = (
            arrays_of(tmp_path / name) if name == "a.npz" else tonari.io.read_ground_truth(tmp_path / name)._asdict()
        )
        assert found["indices"].shape == found["distances"].shape == (0, K)
    assert arrays_of(tmp_path / "b.npz")["indptr"].tolist() == [0]
    for arguments in (("search", none, some, "-k", K), ("graph", none, "-k", K)):
        done = run(*arguments, "-o", tmp_path / "c.npz")
        assert done.exit_code == 1
        assert f"points: shape (0, {D}) is empty, expected at least one row" in done.output
    done = run("convert", none, tmp_path / "c.fbin")
    assert done.exit_code == 1
    assert "Give it at least one row and one column" in done.output


def test_a_file_without_a_byte_has_no_columns(tmp_path: Path) -> None:
    """A result would need the number of columns; the file cannot be distinguished from one that is still empty."""
    for suffix in (".fvecs", ".csv"):
        path = tmp_path / f"none{suffix}"
        path.touch()
        with pytest.raises(tonari.io.FileFormatError, match="the file is empty"):
            tonari.io.read(path)
