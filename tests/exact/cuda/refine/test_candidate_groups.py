"""Lists are turned into the groups that are refined, and thresholds are sampled.

Without a GPU, the kernels run in Triton's interpreter.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tests.helpers.devices import HAS_TORCH, needs_torch, on_device
from tonari.exact.cuda import tuning
from tonari.exact.cuda.rows.groups import LEAST_GROUP, LISTED, group_count, members
from tonari.exact.cuda.rows.tiles import Lists
from tonari.exact.cuda.screens.sampling import sample_for

if HAS_TORCH:
    import torch

    from tonari.exact.cuda.refine.group_lists import choose_groups

pytestmark = needs_torch


def some_lists(rows: int, segments: int, room: int, device: str, seed: int = 0) -> Lists:
    """Make lists of different lengths, with distinct groups in each row."""
    rng = np.random.default_rng(seed)
    counts = rng.integers(0, room + 1, (rows, segments))
    counts[0] = 0
    capacity = segments * room
    values = rng.standard_normal((rows, capacity)).astype(np.float32)
    values[~(np.arange(room) < counts[..., None]).reshape(rows, capacity)] = np.inf
    groups = np.stack([rng.permutation(4 * capacity)[:capacity] for _ in range(rows)])
    entries = groups * 16 + rng.integers(1, 16, groups.shape)
    return Lists(
        *(torch.from_numpy(part).to(device) for part in (values, entries.astype(np.int32), counts.astype(np.int32)))
    )


def expected(lists: Lists, thresholds: np.ndarray, width: int, room: int) -> tuple[list[list[int]], np.ndarray]:
    """Compute the same row by row in plain Python."""
    chosen, following = [], []
    for row in range(len(thresholds)):
        values, entries = lists.values[row].tolist(), lists.entries[row].tolist()
        order = sorted((value, at) for at, value in enumerate(values) if value < math.inf)
        parts: list[int] = []
        bound = float(thresholds[row])
        for rank, (value, at) in enumerate(order):
            group, mask = divmod(entries[at], 16)
            if rank >= width:
                bound = min(bound, value)
                break
            wanted = [(group // 4) * 16 + 4 * part + group % 4 for part in range(4) if mask >> part & 1]
            if len(parts) + len(wanted) > room:
                bound = min(bound, value)
            parts += wanted
        if any(count > lists.room for count in lists.counts[row].tolist()):
            bound = -math.inf
        chosen.append(parts[:room])
        following.append(bound)
    return chosen, np.array(following, np.float32)


@on_device
@pytest.mark.parametrize(
    ("segments", "room", "width", "slots"), [(4, 5, 3, 12), (4, 5, 19, 80), (12, 7, 30, 40), (1, 9, 4, 2)]
)
def test_lowest_groups_are_taken_apart(device: str, segments: int, room: int, width: int, slots: int) -> None:
    lists = some_lists(23, segments, room, device)
    lists.counts[3, 0] = room + 1  # one list was cut off
    thresholds = np.random.default_rng(1).standard_normal(23).astype(np.float32)
    groups, following = choose_groups(lists, torch.from_numpy(thresholds).to(device), width, slots)
    wanted, bound = expected(lists, thresholds, width, slots)
    np.testing.assert_array_equal(following.cpu().numpy(), bound)
    assert bound[3] == -math.inf
    for row, parts in enumerate(wanted):
        found = groups[row].tolist()
        assert found[: len(parts)] == parts
        assert set(found[len(parts) :]) <= {-1}
    assert (groups[0] == -1).all()


def test_parts_of_a_listed_group_are_its_members() -> None:
    for group in (0, 3, 6, 13):
        parts = [(group // 4) * 16 + 4 * part + group % 4 for part in range(4)]
        together = members(np.array(parts), LEAST_GROUP)
        assert sorted(together.ravel()) == sorted(members(np.array([group]), LISTED).ravel())


@pytest.mark.parametrize("n", [100_000, 1_000_000, 30_000_000])
@pytest.mark.parametrize("wanted", [17, 72, 1152])
def test_samples_keep_their_odds(n: int, wanted: int) -> None:
    """Random draws show how often the threshold is too low, and the list too short."""
    sample = sample_for(n, wanted, 8)
    if sample is None:
        assert wanted > n / 1000
        return
    rng = np.random.default_rng(0)
    among = rng.poisson(wanted / sample.stride, 400_000)
    too_low = np.mean(among >= sample.rank)
    below = sample.stride * rng.gamma(sample.rank, size=400_000)
    too_short = np.mean(below > sample.capacity)
    assert too_low <= 2 * tuning.ODDS
    assert too_short <= 2 * tuning.ODDS
    assert max(too_low, np.mean(among >= sample.rank - 1)) > tuning.ODDS / 2  # one rank less would not be enough
    assert sample.capacity <= group_count(n, 8) // 4


def test_small_problems_are_not_sampled() -> None:
    arguments: list[Any] = [(1, 1, 8), (10_000, 10, 32), (30_000, 10, 8), (100_000, 50_000, 8)]
    assert [sample_for(*each) for each in arguments] == [None] * 4
