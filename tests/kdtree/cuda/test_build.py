"""Trees built on a device: boxes, splits, and exact rows."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from tests.helpers import checks
from tests.helpers.checks import Array
from tests.helpers.devices import HAS_TORCH, needs_torch, on_gpu
from tests.helpers.gpu_checks import rows_of, tensor_of
from tests.helpers.tree_search import DEVICE

if HAS_TORCH:
    import torch

    from tonari.kdtree.cuda.build import _keys, build_on_device, split_bounds
    from tonari.kdtree.cuda.tree import WIDTH, DeviceTree, levels_of


pytestmark = [needs_torch]


def tree_of(points: Array, *, leaf: int = 64, double: bool = False) -> DeviceTree:
    return build_on_device(tensor_of(points).to(DEVICE), leaf=leaf, double=double)


def check_record(tree: DeviceTree, points: Array) -> None:
    """Check that each row occurs once, in full leaves, and that every box is as tight as possible."""
    n, d = points.shape
    leaves = -(-n // tree.leaf)
    ids = tree.ids.cpu().numpy()
    assert ids.shape == (leaves * tree.leaf,)
    assert sorted(ids[:n]) == list(range(n))
    assert (ids[n:] == -1).all()
    placed = tree.rows.cpu().numpy().transpose(0, 2, 1).reshape(-1, d)
    assert (placed[:n] == points[ids[:n]]).all()
    assert np.isposinf(placed[n:]).all()
    below = [placed[begin : min(begin + tree.leaf, n)] for begin in range(0, n, tree.leaf)]
    boxes = tree.boxes.cpu().numpy()
    counts = levels_of(leaves)
    assert tree.levels == tuple(np.cumsum([0, *counts[:-1]]))
    assert len(boxes) == sum(counts)
    for begin, nodes in zip(tree.levels, counts, strict=True):
        for node in range(nodes):
            box = boxes[begin + node]
            children = below[node * WIDTH : (node + 1) * WIDTH]
            for lane, child in enumerate(children):
                assert (box[:, 0, lane] == child.min(axis=0)).all()
                assert (box[:, 1, lane] == child.max(axis=0)).all()
            assert np.isposinf(box[:, :, len(children) :]).all()
        below = [np.concatenate(below[node * WIDTH : (node + 1) * WIDTH]) for node in range(nodes)]
    assert len(below) == 1


@pytest.mark.parametrize("n", [1, 7, 63, 64, 65, 2047, 2048, 2049, 5000])
@pytest.mark.parametrize("double", [False, True])
def test_the_record_holds_every_row_in_tight_boxes(n: int, double: bool) -> None:
    points = checks.gaussian(n, 3, seed=n)
    check_record(tree_of(points, double=double), points)


@pytest.mark.parametrize("make", [checks.all_equal, checks.duplicates, checks.tight_far_clusters, checks.one_hot])
def test_the_record_of_hard_rows(make: Any) -> None:
    points = make(3000, 4)
    check_record(tree_of(points), points)


@on_gpu
@pytest.mark.parametrize("make", [checks.gaussian, checks.duplicates, checks.all_equal])
@pytest.mark.parametrize("d", [2, 25])
def test_the_record_of_many_rows(make: Any, d: int) -> None:
    """Quotients on a GPU may exceed 1, and their ties must stay within the node."""
    points = make(100_000, d)
    check_record(tree_of(points), points)


@pytest.mark.parametrize("leaf", [128, 192])
@pytest.mark.parametrize("n", [1000, 5000])
def test_a_leaf_of_several_blocks(n: int, leaf: int) -> None:
    points = checks.gaussian(n, 2)
    check_record(tree_of(points, leaf=leaf), points)


def test_wide_rows_are_split_by_sorting_alone() -> None:
    points = checks.gaussian(3000, 21)
    check_record(tree_of(points), points)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "uint8", "int8"])
def test_narrow_rows_are_held_exactly(dtype: str) -> None:
    points = rows_of(300, 5, dtype)
    check_record(tree_of(points), points.astype(np.float32))


def test_float64_rows_at_an_offset_are_held_exactly() -> None:
    points = checks.offset_float64(500, 3)
    check_record(tree_of(points, double=True), points)


@pytest.mark.full
def test_splits_make_boxes_that_hardly_overlap() -> None:
    points = np.random.default_rng(0).random((40_000, 2), dtype=np.float32)
    tree = tree_of(points)
    low, high = tree.boxes[: tree.levels[1], :, 0].cpu(), tree.boxes[: tree.levels[1], :, 1].cpu()
    areas = (high - low).nan_to_num(0.0).prod(1)
    assert 0.5 < float(areas.sum()) < 1.05


@pytest.mark.parametrize("widest", [0, 1, 2])
def test_segments_are_ordered_by_their_widest_dimension(widest: int) -> None:
    points = np.random.default_rng(0).random((600, 3))
    points[:, widest] *= 100
    order, bounds = torch.arange(600, dtype=torch.int32, device=DEVICE), torch.tensor([0, 250, 600], device=DEVICE)
    keys = _keys(torch.from_numpy(points).to(DEVICE), order, bounds).cpu().numpy()
    assert keys[:250].max() < keys[250:].min()
    for segment in (slice(0, 250), slice(250, 600)):
        alike = np.corrcoef(keys[segment], points[segment].T)[0, 1:]
        assert alike[widest] > 0.95
        assert np.abs(np.delete(alike, widest)).max() < 0.3


@pytest.mark.parametrize("leaves", [1, 2, 31, 32, 33, 1023, 1024, 1025, 40_000])
def test_split_bounds_never_cut_a_node(leaves: int) -> None:
    rounds = [*split_bounds(leaves), np.arange(leaves + 1)]
    for before, after in itertools.pairwise(rounds):
        assert set(before) <= set(after)
        for begin, end in itertools.pairwise(before):
            inner = [cut for cut in after if begin < cut < end] if leaves <= 1025 else []
            for cut in inner:
                unit = WIDTH ** max(0, int(np.ceil(np.log(end - begin) / np.log(WIDTH) - 1e-9)) - 1)
                assert (cut - begin) % unit == 0
