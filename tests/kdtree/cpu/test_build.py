"""The record of a k-d tree: properties of every record, and equality of the compiled build with the reference, bit
for bit.
"""

from __future__ import annotations

import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.helpers.checks import HOSTILE, gaussian
from tonari.core.process.progress import Progress
from tonari.core.process.workers import Stopped, Workers
from tonari.inputs import held
from tonari.kdtree.cpu import build as building
from tonari.kdtree.cpu.build import build
from tonari.kdtree.cpu.tree import WIDTH, Tree, level_nodes, plan_height
from tonari.kdtree.reference import build_reference

Array = npt.NDArray[Any]

# From 16,385 points on, the first levels are split by passes over ranges of rows, with a sample: here three levels.
MANY = 70_000


def assert_valid_tree(tree: Tree, points: Array, *, height: int, double: bool) -> None:
    """Check all properties of a tree of medians, however it was built."""
    n, d = points.shape
    values = points.astype(np.float64 if double else np.float32)
    leaves = 1 << height
    assert (tree.n, tree.d, tree.height, tree.leaves) == (n, d, height, leaves)
    assert tree.begins.dtype == np.int64
    assert tree.begins.tolist() == [i * n >> height for i in range(leaves + 1)]
    assert tree.capacity == -(-np.diff(tree.begins).max() // 16) * 16
    assert tree.ids.dtype == np.int32
    assert np.array_equal(np.sort(tree.ids), np.arange(n)), "not every row once"

    assert tree.rows.shape == (leaves, d, tree.capacity)
    assert tree.rows.dtype == values.dtype
    boxes = np.full((leaves, d, 2), np.nan, values.dtype)
    for leaf in range(leaves):
        ids = tree.ids[tree.begins[leaf] : tree.begins[leaf + 1]]
        assert (np.diff(ids) > 0).all(), "ids of a leaf do not ascend"
        assert np.array_equal(tree.rows[leaf, :, : len(ids)], values[ids].T)
        assert np.array_equal(np.signbit(tree.rows[leaf, :, : len(ids)]), np.signbit(values[ids].T)), "a sign of zero"
        assert (tree.rows[leaf, :, len(ids) :] == np.inf).all()
        boxes[leaf, :, 0], boxes[leaf, :, 1] = values[ids].min(axis=0), values[ids].max(axis=0)

    assert [len(level) for level in tree.boxes] == level_nodes(leaves)
    for level in tree.boxes:
        assert level.dtype == values.dtype
        assert level.shape[1:] == (d, 2, WIDTH)
        assert level.flags.c_contiguous
        children = level.transpose(0, 3, 1, 2).reshape(-1, d, 2)
        assert np.array_equal(children[: len(boxes)], boxes)
        assert (children[len(boxes) :] == np.inf).all()
        boxes = np.array([[b[:, :, 0].min(axis=0), b[:, :, 1].max(axis=0)] for b in _groups(boxes)]).swapaxes(1, 2)

    assert tree.split_dimensions.shape == tree.split_values.shape == (leaves - 1,)
    assert tree.split_dimensions.dtype == np.int32
    assert tree.split_values.dtype == values.dtype
    for node in range(leaves - 1):
        level = (node + 1).bit_length() - 1
        i = node + 1 - (1 << level)
        begin, middle, end = (tree.begins[j << (height - level - 1)] for j in (2 * i, 2 * i + 1, 2 * i + 2))
        column = values[:, tree.split_dimensions[node]]
        left, right = tree.ids[begin:middle], tree.ids[middle:end]
        value = tree.split_values[node]
        assert column[left].max() <= value == column[right].min()
        tied = [side[column[side] == value] for side in (left, right)]
        assert len(tied[0]) == 0 or tied[0].max() < tied[1].min(), "ties are not cut in order of their rows"
    arrays = [tree.begins, tree.ids, tree.rows, *tree.boxes, tree.split_dimensions, tree.split_values]
    assert tree.nbytes == sum(array.nbytes for array in arrays)


def _groups(boxes: Array) -> list[Array]:
    return [boxes[i : i + WIDTH] for i in range(0, len(boxes), WIDTH)]


def assert_same_tree(found: Tree, truth: Tree) -> None:
    for name in ("n", "d", "height", "capacity"):
        assert getattr(found, name) == getattr(truth, name), name
    for name in ("begins", "ids", "rows", "split_dimensions", "split_values"):
        assert getattr(found, name).dtype == getattr(truth, name).dtype, name
        assert getattr(found, name).tobytes() == getattr(truth, name).tobytes(), name
    assert len(found.boxes) == len(truth.boxes)
    for level, expected in zip(found.boxes, truth.boxes, strict=True):
        assert level.dtype == expected.dtype
        assert np.array_equal(level, expected)


def _build(points: Array, height: int, *, double: bool = False, threads: int = 2) -> Tree:
    return build(held(points), height=height, double=double or points.dtype == np.float64, workers=Workers(threads))


@pytest.fixture(autouse=True)
def _garbage(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fill memory so that everything that the build does not write is wrong."""

    def garbage(shape: Any, dtype: npt.DTypeLike) -> Array:
        return np.full(shape, np.nan if np.dtype(dtype).kind == "f" else -77, dtype)

    monkeypatch.setattr(building, "np", SimpleNamespace(**vars(np) | {"empty": garbage}))


@pytest.mark.parametrize("data", HOSTILE)
@pytest.mark.parametrize(("n", "d"), [(1, 1), (7, 3), (257, 10), (1000, 1), (3000, 17)])
def test_equals_the_reference_and_keeps_the_promises(data: str, n: int, d: int) -> None:
    points = HOSTILE[data](n, d, 0)
    double = points.dtype == np.float64
    for height in sorted({0, 1, 2, 5, n.bit_length() - 1} & set(range(n.bit_length()))):
        truth = build_reference(points, height, double)
        assert_same_tree(_build(points, height), truth)
        assert_valid_tree(truth, points, height=height, double=double)


@pytest.mark.parametrize("n", [15, 16, 17, 63, 64, 65, 16_383, 16_384, 16_385, 16_386, 32_769])
def test_sizes_about_a_boundary(n: int) -> None:
    points = gaussian(n, 2)
    height = plan_height(n, 16)
    assert_same_tree(_build(points, height), build_reference(points, height, False))


def _sorted(points: Array) -> Array:
    return np.sort(points, axis=0)


def _grid(points: Array) -> Array:
    return np.round(points)


def _two_values(points: Array) -> Array:
    return (points > 1).astype(np.float32)


def _equal(points: Array) -> Array:
    return np.zeros_like(points)


def _sample_is_far(points: Array) -> Array:
    """Put the sampled rows of a large node elsewhere, so that its median is not among theirs."""
    points = points.copy()
    points[::61] += 100
    return points


def _sample_is_narrow(points: Array) -> Array:
    """Let all sampled rows go left, so that the right child has no sample."""
    points = points.copy()
    points[::61] = -100
    points[::61, 0] -= np.arange(len(points[::61]))
    return points


def _outlier(points: Array) -> Array:
    points = points.copy()
    points[12345] = 1e30
    return points


@pytest.mark.parametrize(
    "shape", [np.asarray, _sorted, _grid, _two_values, _equal, _sample_is_far, _sample_is_narrow, _outlier]
)
def test_many_points(shape: Any) -> None:
    points = shape(gaussian(MANY, 3))
    truth = build_reference(points, 11, False)
    assert_valid_tree(truth, points, height=11, double=False)
    for threads in (1, 2, 5):
        assert_same_tree(_build(points, 11, threads=threads), truth)


@pytest.mark.parametrize("height", [0, 1, 2, 3, 4])
def test_few_leaves_of_many_points(height: int) -> None:
    points = gaussian(MANY, 3)
    assert_same_tree(_build(points, height), build_reference(points, height, False))


@pytest.mark.parametrize("shape", [np.asarray, _grid, _equal, _sample_is_narrow])
def test_a_task_larger_than_the_cache(monkeypatch: pytest.MonkeyPatch, shape: Any) -> None:
    monkeypatch.setattr(building, "TOP_LEVELS", 1)  # otherwise this takes four million points
    points = shape(gaussian(MANY, 3))
    assert_same_tree(_build(points, 11), build_reference(points, 11, False))


def test_more_columns_than_the_cache_holds_rows_of() -> None:
    points = gaussian(600, 3000)
    for height in (0, 2, 9):
        assert_same_tree(_build(points, height), build_reference(points, height, False))


@pytest.mark.parametrize("dtype", [np.float16, "bfloat16", np.uint8, np.int8, np.float32, np.float64])
@pytest.mark.parametrize("double", [False, True])
@pytest.mark.parametrize("n", [500, 40_000])
def test_dtypes(dtype: npt.DTypeLike, double: bool, n: int) -> None:
    points = np.clip(gaussian(n, 4) * 30, 0 if dtype == np.uint8 else -127, 127).astype(dtype)
    if dtype == np.float64 and not double:
        with pytest.raises(ValueError, match="double=True"):
            build(points, height=3, double=False, workers=Workers(1))
        return
    found = _build(points, 5, double=double)
    assert_same_tree(found, build_reference(points, 5, double))
    assert found.rows.dtype == (np.float64 if double else np.float32)


def test_float64_keeps_what_float32_would_lose() -> None:
    points = gaussian(40_000, 3, dtype=np.float64) + 1e8
    found = _build(points, 8)
    assert_same_tree(found, build_reference(points, 8, True))
    assert (found.rows[0, :, 0] == points[found.ids[0]]).all()


def test_ids_beyond_int32(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(building, "index_dtype", lambda n: np.dtype(np.int64))  # as 2**31 points have
    for points in (gaussian(MANY, 2), gaussian(40_000, 2, dtype=np.float64)):
        found = _build(points, 9)
        truth = build_reference(points, 9, points.dtype == np.float64)
        assert found.ids.dtype == np.int64
        assert np.array_equal(found.ids, truth.ids)
        assert found.rows.tobytes() == truth.rows.tobytes()


def test_points_that_cannot_be_written_to_or_lie_in_a_file(tmp_path: Path) -> None:
    points = gaussian(40_000, 3)
    truth = build_reference(points, 8, False)
    mapped = np.memmap(tmp_path / "points", np.float32, "w+", shape=points.shape)
    mapped[:] = points
    mapped.flush()
    assert_same_tree(_build(np.memmap(tmp_path / "points", np.float32, "r", shape=points.shape), 8), truth)
    points.setflags(write=False)
    assert_same_tree(_build(points, 8), truth)


@pytest.mark.parametrize(("n", "height"), [(1, 1), (7, 3), (1000, 10), (5, -1)])
def test_no_leaf_without_a_point(n: int, height: int) -> None:
    with pytest.raises(ValueError, match=f"height={height}: expected 0 to {n.bit_length() - 1}"):
        _build(gaussian(n, 2), height)


@pytest.mark.parametrize("n", [100, MANY])
def test_the_bar_counts_every_point(n: int) -> None:
    seen: list[int] = []
    with Progress(lambda done, total: seen.append(done), total=n, seconds=0, label="tree") as bar:
        build(gaussian(n, 2), height=5, double=False, workers=Workers(2), bar=bar)
    assert seen[-1] == n


class _PressesCtrlC:
    def add(self, amount: int) -> None:
        raise KeyboardInterrupt


@pytest.mark.parametrize("threads", [1, 3])
def test_an_interrupt_comes_out_and_leaves_no_thread(threads: int) -> None:
    before = set(threading.enumerate())
    with pytest.raises(KeyboardInterrupt):
        build(gaussian(MANY, 2), height=9, double=False, workers=Workers(threads), bar=_PressesCtrlC())
    assert set(threading.enumerate()) <= before


def test_a_build_that_is_told_to_stop_does() -> None:
    workers = Workers(1)
    workers.stop()
    with pytest.raises(Stopped):
        build(gaussian(MANY, 2), height=9, double=False, workers=workers)


def test_many_equal_values_take_no_longer() -> None:
    """Selection by swapping, or a tree of unequal halves, would take quadratic time, that is, minutes."""
    start = time.perf_counter()
    for shape in (_equal, _two_values, _sorted):
        _build(shape(gaussian(1_000_000, 2)), 14)
    assert time.perf_counter() - start < 30
