"""If an array changes after an Index was made of it, searches are refused; with `copy=True` it may change."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tonari
from tests.helpers.checks import assert_same_neighbors
from tests.helpers.devices import needs_torch, on_gpu
from tonari import inputs
from tonari.core.errors import BudgetExceeded
from tonari.inputs import tuning
from tonari.inputs.arrays.unchanged import Unchanged


def _points(n: int = 2000, d: int = 16, seed: int = 0, dtype: Any = np.float32) -> Any:
    return (10 * np.random.default_rng(seed).random((n, d))).astype(dtype)


USES: dict[str, Callable[[tonari.Index, Any, Path], Any]] = {
    "search of one": lambda index, x, folder: index.search(x[:1], 3),
    "search of many": lambda index, x, folder: index.search(x[:300], 3),
    "filtered search": lambda index, x, folder: index.search(x[:1], 3, where=np.ones(len(index), bool)),
    "search_chunks": lambda index, x, folder: list(index.search_chunks([x[:2]], 3)),
    "search_to_file": lambda index, x, folder: tonari.search_to_file(
        x[:5], index, 3, folder / "found.ibin", overwrite=True
    ),
    "radius_search": lambda index, x, folder: index.radius_search(x[:1], 1.0),
    "radius_count": lambda index, x, folder: index.radius_count(x[:1], 1.0),
    "radius_chunks": lambda index, x, folder: list(index.radius_chunks([x[:2]], 1.0)),
    "add": lambda index, x, folder: index.add(x[:2]),
    "remove": lambda index, x, folder: index.remove([3]),
    "compact": lambda index, x, folder: index.compact(),
    "pickle": lambda index, x, folder: pickle.dumps(index),
    "deepcopy": lambda index, x, folder: copy.deepcopy(index),
    "copy": lambda index, x, folder: copy.copy(index).search(x[:1], 3),
    "save": lambda index, x, folder: index.save(folder / "points.index"),
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("method", ["exact", "kdtree"])
def test_each_use_of_a_changed_array_is_refused(use: str, method: str, tmp_path: Path) -> None:
    x = _points()
    index, before = tonari.Index(x, method=method), x.copy()
    USES[use](index, before, tmp_path) if use not in ("add", "remove") else None  # these leave no array of the caller
    x[:] = _points(seed=1)
    with pytest.raises(RuntimeError, match=r"points: the array has changed \(row 0\).*copy=True"):
        USES[use](index, before, tmp_path)
    x[:] = before  # as before
    USES[use](index, before, tmp_path)


def test_an_answer_is_not_of_a_mixture() -> None:
    x = _points(d=64, dtype=np.float64)
    index, before = tonari.Index(x), x.copy()
    x[:] = _points(d=64, seed=1, dtype=np.float64)
    with pytest.raises(RuntimeError, match="copy=True"):
        index.search(before[:5], 3)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.float64, np.uint8, np.int8])
@pytest.mark.parametrize("shape", [(1, 1), (2, 1), (5, 3), (70, 2), (5000, 2), (300, 600)])
def test_all_shapes_and_dtypes(dtype: Any, shape: tuple[int, int]) -> None:
    x = np.ones(shape, dtype)
    index = tonari.Index(x)
    index.search(x[:1], 1)
    index.search(np.ones((1025, shape[1]), dtype), 1)
    x[:] = 3
    for m in (1, 1025):
        with pytest.raises(RuntimeError, match="has changed"):
            index.search(np.ones((m, shape[1]), dtype), 1)


def test_the_last_and_middle_rows_are_looked_at() -> None:
    for row in (0, 64, 128):
        x = _points(129)
        index = tonari.Index(x)
        x[row] += 1
        with pytest.raises(RuntimeError, match=rf"row {row}\)"):
            index.search(x[:1], 1)
        with pytest.raises(RuntimeError, match="has changed"):
            index.search(x[:100], 1)


@pytest.mark.parametrize("use", ["search of one", "radius_count", "pickle", "add"])
@pytest.mark.parametrize(
    "given",
    [{"metric": "haversine"}, {"metric": "minkowski:3"}, {"metric": "l1", "weights": [1.0, 2.0]}, {"metric": "cosine"}],
    ids=["haversine", "minkowski", "weights", "cosine"],
)
def test_rows_that_are_changed_before_they_are_compared(use: str, given: dict[str, Any], tmp_path: Path) -> None:
    x = _points(100, 2, dtype=np.float64) / 10
    index, before = tonari.Index(x, **given), x.copy()
    x += 0.5
    with pytest.raises(RuntimeError, match="has changed"):
        USES[use](index, before, tmp_path)


@pytest.mark.parametrize("use", USES)
def test_after_updates(use: str, tmp_path: Path) -> None:
    x = _points(5000)
    index, before = tonari.Index(x), x.copy()
    index.remove([7])
    index.add(before[:3])
    x += 1
    with pytest.raises(RuntimeError, match="has changed"):
        USES[use](index, before, tmp_path)


def test_views_and_their_bases() -> None:
    base = _points()
    view = base[10:]
    view.flags.writeable = False
    index = tonari.Index(view)
    base[:] = 0
    with pytest.raises(RuntimeError, match="has changed"):
        index.search(view[:1], 1)


def test_arrays_that_nobody_can_write_to_are_not_looked_at(tmp_path: Path) -> None:
    read_only = np.frombuffer(_points().tobytes(), np.float32).reshape(-1, 16)
    np.save(tmp_path / "x.npy", _points())
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    for x in (read_only, mapped):
        assert not tonari.Index(x)._state.unchanged
    assert tonari.Index(np.load(tmp_path / "x.npy", mmap_mode="r+"))._state.unchanged


@pytest.mark.parametrize(
    "layout", [np.asfortranarray, lambda x: x[:, ::-1], lambda x: x.astype(">f4"), np.ndarray.tolist]
)
def test_what_is_converted_may_change(layout: Any) -> None:
    x = layout(_points(50))
    index, before = tonari.Index(x), np.array(x)
    truth = tonari.search(before[:4], before, 3)
    if isinstance(x, list):
        x[0][:] = x[1]
    else:
        x[:] = 0
    assert_same_neighbors(index.search(before[:4], 3), truth)


@pytest.mark.parametrize("metric", ["euclidean", "hamming"])
@pytest.mark.parametrize("method", ["auto", "exact", "kdtree"])
def test_copy(metric: str, method: str, tmp_path: Path) -> None:
    if metric == "hamming":
        x, method = np.random.default_rng(0).integers(0, 256, (500, 8), np.uint8), "auto"
    else:
        x = _points(500)
    index, before = tonari.Index(x, metric=metric, method=method, copy=True, memory="10MB"), x.copy()
    truth = tonari.search(before[:5], before, 3, metric=metric)
    x[:] = 0
    assert_same_neighbors(index.search(before[:5], 3), truth)
    assert_same_neighbors(pickle.loads(pickle.dumps(index)).search(before[:5], 3), truth)
    index.save(tmp_path / "points.index")
    assert_same_neighbors(tonari.Index.load(tmp_path / "points.index").search(before[:5], 3), truth)
    assert not np.may_share_memory(index.points, x)


def test_the_copy_is_part_of_the_memory() -> None:
    x = _points(3000)
    with pytest.raises(BudgetExceeded, match=f"100000 bytes: copies of the points take {x.nbytes}"):
        tonari.Index(x, copy=True, memory=100_000)
    index = tonari.Index(x, copy=True, memory=9_000_000)
    assert index.memory == 9_000_000
    assert index._state.largest.memory == 9_000_000 - x.nbytes
    assert pickle.loads(pickle.dumps(index))._state.largest.memory == 9_000_000


def test_copy_is_true_or_false() -> None:
    with pytest.raises(TypeError, match="copy='yes': expected True or False"):
        tonari.Index(_points(5), copy="yes")  # type: ignore[arg-type]


def _written(torch: Any, x: Any) -> list[Callable[[], Any]]:
    """Write to rows that are not compared one by one."""
    return [lambda: x[5].add_(1), lambda: x.view(-1)[17].fill_(3.0), lambda: x.T[3, 7].mul_(2)]


@needs_torch
@pytest.mark.parametrize("write", range(3))
def test_torch_tells_of_each_write(write: int, tmp_path: Path) -> None:
    import torch

    x = torch.from_numpy(_points())
    index = tonari.Index(x)
    for use in ("search of one", "search of many", "radius_search", "pickle", "save"):
        USES[use](index, x.clone(), tmp_path)
    _written(torch, x)[write]()
    for use in USES:
        with pytest.raises(RuntimeError, match=r"points: the array (has changed|was written to).*copy=True"):
            USES[use](index, x.clone(), tmp_path)


@needs_torch
def test_tensors_that_do_not_count_and_copies() -> None:
    import torch

    with torch.inference_mode():
        inferred = torch.from_numpy(_points())
        index = tonari.Index(inferred)
        index.search(inferred[:1], 1)
    parameter = torch.nn.Parameter(torch.from_numpy(_points()))
    with torch.no_grad():
        index, copied = tonari.Index(parameter), tonari.Index(parameter, copy=True)
        before = parameter.clone()
        parameter.add_(1.0)
    with pytest.raises(RuntimeError, match="copy=True"):
        index.search(before[:1], 1)
    assert copied.search(before[:9], 1).indices.ravel().tolist() == list(range(9))


@needs_torch
@pytest.mark.parametrize("write", range(3))
def test_rows_of_a_tensor_are_not_read(write: int) -> None:
    import torch

    x = torch.from_numpy(_points(64, 8))
    unchanged = inputs.Unchanged(x.detach())
    x.data.add_(1)  # a write that torch does not count
    unchanged.check()
    _written(torch, x)[write]()
    with pytest.raises(RuntimeError, match="points: the array was written to"):
        unchanged.check()


@on_gpu
@pytest.mark.parametrize("write", range(3))
def test_tensors_on_a_device(write: int) -> None:
    import torch

    x = torch.from_numpy(_points(64, 8)).cuda()
    index, copied, before = tonari.Index(x), tonari.Index(x, copy=True), x.clone()
    index.search(before[:2], 2)
    _written(torch, x)[write]()
    with pytest.raises(RuntimeError, match="points: the array was written to"):
        index.search(before[:2], 2)
    assert copied.search(before, 1).indices.ravel().tolist() == list(range(64))


def test_estimators_tell_to_fit_again() -> None:
    pytest.importorskip("sklearn")
    from tonari.estimators import NearestNeighbors

    x = _points(200)
    nearest = NearestNeighbors(n_neighbors=2).fit(x)
    queries = x[:2].copy()
    nearest.kneighbors(queries)
    x += 1
    with pytest.raises(RuntimeError, match="fit an estimator again"):
        nearest.kneighbors(queries)


def test_more_rows_are_compared_where_a_search_takes_longer() -> None:
    rows = np.zeros((40 * tuning.COMPARED_ONE_OF, 2), np.float32)
    unchanged, few, many = Unchanged(rows), 0, 0
    for row in rows:
        row += 1
        few += _is_noticed(unchanged, np.zeros((1, 2)))
        many += _is_noticed(unchanged, np.zeros((tuning.FEW_VALUES, 2)))
        row -= 1
    assert 2 <= few <= tuning.LEAST_COMPARED
    assert tuning.LEAST_COMPARED < tuning.MOST_COMPARED // 2 <= many <= tuning.MOST_COMPARED


def _is_noticed(unchanged: Unchanged, queries: Any) -> bool:
    try:
        unchanged.check(queries)
    except RuntimeError:
        return True
    return False
