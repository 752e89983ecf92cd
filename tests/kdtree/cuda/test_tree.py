"""The record of a tree on a device."""

from __future__ import annotations

import pytest

from tests.helpers import checks
from tests.helpers.checks import Array
from tests.helpers.devices import HAS_TORCH, needs_torch
from tests.helpers.gpu_checks import tensor_of
from tests.helpers.tree_search import DEVICE

if HAS_TORCH:
    from tonari.kdtree.cuda.build import build_on_device
    from tonari.kdtree.cuda.tree import BLOCK, DeviceTree, device_tree_bytes, leaf_of


pytestmark = [needs_torch]


def tree_of(points: Array, *, leaf: int = 64, double: bool = False) -> DeviceTree:
    return build_on_device(tensor_of(points).to(DEVICE), leaf=leaf, double=double)


def test_bytes_are_those_of_the_tensors() -> None:
    for n in (1, 100, 5000):
        assert tree_of(checks.gaussian(n, 3)).nbytes == device_tree_bytes(n, 3, 64, 4)


@pytest.mark.parametrize(("n", "wanted"), [(1, 1), (1000, 64), (1000, 65), (10, 10**6)])
def test_leaves_are_whole_blocks(n: int, wanted: int) -> None:
    leaf = leaf_of(n, wanted)
    assert leaf % BLOCK == 0
    assert leaf >= min(n, wanted)
