"""The shape of a tree: its height, its leaves, and the boxes of its nodes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tonari.kdtree.cpu import build as building
from tonari.kdtree.cpu.tree import WIDTH, boxes_above, leaf_begins, plan_height, room_for

Array = npt.NDArray[Any]


@pytest.fixture(autouse=True)
def _garbage(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fill memory so that everything that the build does not write is wrong."""

    def garbage(shape: Any, dtype: npt.DTypeLike) -> Array:
        return np.full(shape, np.nan if np.dtype(dtype).kind == "f" else -77, dtype)

    monkeypatch.setattr(building, "np", SimpleNamespace(**vars(np) | {"empty": garbage}))


def test_height_for_a_leaf() -> None:
    for n in (1, 2, 3, 7, 15, 16, 17, 31, 32, 33, 1000, 65_536, 65_537):
        for leaf in (1, 2, 3, 16, 64):
            height = plan_height(n, leaf)
            sizes = np.diff(leaf_begins(n, height))
            assert sizes.min() >= 1
            assert sizes.max() <= leaf or leaf == 1
            if height:
                assert np.diff(leaf_begins(n, height - 1)).max() > leaf


def test_room_and_places() -> None:
    assert room_for(np.array([0, 1])) == 16
    assert room_for(np.array([0, 16, 32])) == 16
    assert room_for(np.array([0, 16, 33])) == 32
    huge = 2**40 + 12_345  # i * n overflows int64
    assert leaf_begins(huge, 3).tolist() == [i * huge >> 3 for i in range(9)]


def test_boxes_over_empty_leaves() -> None:
    rng = np.random.default_rng(0)
    leaf = np.sort(rng.standard_normal((20, 3, 2, WIDTH)).astype(np.float32), axis=2)
    leaf[3, :, :, 5:] = np.inf
    leaf[17] = np.inf
    low, first, top = boxes_above(leaf)
    assert low is leaf
    assert first.shape == (2, 3, 2, WIDTH)
    assert (first[0, :, 1, 3] == leaf[3, :, 1, :5].max(axis=1)).all()
    assert (first[1, :, :, 1] == np.inf).all()
    assert (first[1, :, :, 4:] == np.inf).all()
    assert (top[0, :, 0, 1] == leaf[[16, 18, 19], :, 0].min(axis=(0, 2))).all()
    assert (top[0, :, 1, 1] == leaf[[16, 18, 19], :, 1].max(axis=(0, 2))).all()
    assert (top[0, :, :, 2:] == np.inf).all()
