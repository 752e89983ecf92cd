"""Lists of different lengths on a device are ordered by (value, id), wherever they came from."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.helpers.devices import HAS_TORCH, needs_torch, on_device
from tests.helpers.radius_checks import assert_same_within
from tests.helpers.radius_on_cuda import on_host
from tonari.core.results.radius_neighbors import RadiusNeighbors
from tonari.select import tuning

pytestmark = needs_torch
if HAS_TORCH:
    import torch

    from tonari.select.cuda.ordering.ragged import _least_dtype, join_parts, one_after_another, order_lists


def lists_of(lengths: list[int], dtype: str, descending: bool, seed: int = 0) -> list[tuple[Any, Any]]:
    """Make lists of distinct ids in random order, with ties, infinite and negative values, and zeros."""
    rng = np.random.default_rng(seed)
    choices = np.array(
        [-np.inf, -1.5, 0.0, -0.0, 1e-40, 2.0, 7.25, np.inf] if descending else [0.0, 1e-40, 3.0, np.inf]
    )
    return [
        (
            np.where(rng.random(n) < 0.5, rng.choice(choices, n), rng.random(n)).astype(dtype),
            rng.permutation(2 * n)[:n].astype(np.int32),
        )
        for n in lengths
    ]


def in_order(lists: list[tuple[Any, Any]], descending: bool) -> RadiusNeighbors:
    ordered = [np.lexsort((ids, -values if descending else values)) for values, ids in lists]
    return RadiusNeighbors(
        np.cumsum([0, *(len(ids) for _, ids in lists)]),
        np.concatenate([ids[order] for (_, ids), order in zip(lists, ordered, strict=True)]),
        np.concatenate([values[order] + 0 for (values, _), order in zip(lists, ordered, strict=True)]),  # not -0.0
    )


@on_device
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("lengths", [(16, 64, 256, 1024), (16,)])
def test_lists_of_every_length_are_put_in_order(
    device: str, dtype: str, descending: bool, lengths: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tuning, "LIST_LENGTHS", lengths)
    monkeypatch.setattr(tuning, "LONG_LIST_BYTES", 80 * 70)
    lists = lists_of([3, 0, 16, 17, 64, 1, 65, 70, 15, 0], dtype, descending)
    values, ids = (np.concatenate([part[at] for part in reversed(lists)]) for at in range(2))
    counts = np.array([len(ids) for _, ids in lists])
    begins = counts[::-1].cumsum()[::-1] - counts
    tensors = (torch.from_numpy(part.copy()).to(device) for part in (begins, counts, values, ids))
    assert_same_within(on_host(order_lists(*tensors, descending=descending)), in_order(lists, descending))


@on_device
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_many_long_lists_at_a_time(device: str, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "LIST_LENGTHS", (1,))
    lists = lists_of([2 + at % 2 for at in range(257)], dtype, True)
    values, ids = (np.concatenate([one[at] for one in lists]) for at in range(2))
    counts = np.array([len(ids) for _, ids in lists])
    tensors = (torch.from_numpy(part.copy()).to(device) for part in (counts.cumsum() - counts, counts, values, ids))
    assert_same_within(on_host(order_lists(*tensors, descending=True)), in_order(lists, True))


@pytest.mark.parametrize(
    ("count", "largest"), [(256, 255), (257, 2**15 - 1), (2**15, 2**15 - 1), (2**15 + 1, 2**31 - 1)]
)
def test_lists_have_numbers_of_few_bytes(count: int, largest: int) -> None:
    assert torch.iinfo(_least_dtype(count)).max == largest >= count - 1


@on_device
def test_wide_ids_and_no_lists_at_all(device: str) -> None:
    lists = [(values, ids.astype(np.int64) + 2**32) for values, ids in lists_of([2, 20, 0], "float32", False)]
    parts = (torch.from_numpy(np.concatenate([one[at] for one in lists])).to(device) for at in range(2))
    counts = torch.tensor([2, 20, 0], device=device)
    begins = torch.tensor([0, 2, 22], device=device)
    assert_same_within(on_host(order_lists(begins, counts, *parts, descending=False)), in_order(lists, False))
    nothing = torch.zeros(2, dtype=torch.int64, device=device)
    empty = order_lists(nothing, nothing, torch.empty(0, device=device), nothing.int()[:0], descending=False)
    assert empty.indptr.tolist() == [0, 0, 0]
    assert len(empty.indices) == len(empty.distances) == 0


@on_device
@pytest.mark.parametrize("descending", [False, True])
def test_parts_are_joined_and_blocks_follow_each_other(device: str, descending: bool) -> None:
    pieces = [lists_of([2, 0, 5, 9], "float32", descending, seed) for seed in range(3)]
    pieces = [[(values, 100 * at + ids) for values, ids in lists] for at, lists in enumerate(pieces)]
    ordered = [in_order(lists, descending) for lists in pieces]
    there = [RadiusNeighbors(*(torch.from_numpy(part).to(device) for part in lists)) for lists in ordered]
    whole = [tuple(np.concatenate([lists[row][at] for lists in pieces]) for at in range(2)) for row in range(4)]
    assert_same_within(on_host(join_parts(there, descending=descending)), in_order(whole, descending))
    every = [one for lists in pieces for one in lists]
    assert_same_within(on_host(one_after_another(there)), in_order(every, descending))
