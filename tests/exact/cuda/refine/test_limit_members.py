"""Groups at or below a score, and members within a limit, for each row, compared with NumPy.

Without a CUDA device the kernels run in Triton's interpreter.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.exact.cuda.refine.test_candidate_groups import some_lists
from tests.helpers.checks import Array, gaussian
from tests.helpers.devices import HAS_TORCH, needs_torch, on_device
from tonari.exact.cuda import tuning
from tonari.exact.cuda.rows.groups import POINT_TILE, group_count, members

if HAS_TORCH:
    import torch

    from tonari.exact.cuda.refine.limit_members import Near, near_listed, near_members, near_minima

pytestmark = needs_torch


def there(device: str, *arrays: Array) -> list[Any]:
    return [torch.from_numpy(np.array(array)).to(device) for array in arrays]


def agree(found: Near, expected: list[set[int]], unknown: tuple[int, ...] = ()) -> None:
    """Check that every row has the expected entries, in any order, and that rows with too many entries report it."""
    counts = found.found.tolist()
    for row, (count, wanted) in enumerate(zip(counts, expected, strict=True)):
        whole = row not in unknown and len(wanted) <= found.room
        assert bool(found.whole[row]) is whole
        if row in unknown:
            continue
        assert count == len(wanted)
        written = found.numbers[row, :count].tolist()
        assert len(set(written)) == len(written) == min(count, found.room)
        assert set(written) <= wanted


@on_device
@pytest.mark.parametrize("room", [1, 7, 4 * 12 * 7])
@pytest.mark.parametrize(("segments", "segment_room"), [(4, 5), (12, 7), (1, 9)])
def test_groups_of_lists(device: str, segments: int, segment_room: int, room: int, monkeypatch: Any) -> None:
    monkeypatch.setattr(tuning, "LIMIT_SLOTS", 16)  # lists of several tiles
    rows = 23
    lists = some_lists(rows, segments, segment_room, device)
    lists.counts[3, 0] = segment_room + 1  # one list was cut off
    rng = np.random.default_rng(1)
    thresholds = np.full(rows, 3, np.float32)
    scores = np.minimum(rng.standard_normal(rows).astype(np.float32), thresholds)
    scores[4] = thresholds[4] = np.inf
    scores[5], thresholds[5] = 1, 1 - 2**-20  # above the threshold of the list
    scores[6] = -np.inf
    values, entries = lists.values.cpu().numpy(), lists.entries.cpu().numpy()
    scores[7] = min(values[7].min(), thresholds[7])
    expected: list[set[int]] = []
    for row in range(rows):
        chosen = entries[row][(values[row] <= scores[row]) & (values[row] < np.inf)].tolist()
        groups = [divmod(entry, 16) for entry in chosen]
        expected.append(
            {group // 4 * 16 + 4 * part + group % 4 for group, mask in groups for part in range(4) if mask >> part & 1}
        )
    assert expected[6] == set()
    assert any(expected)
    agree(near_listed(lists, *there(device, thresholds, scores), room), expected, unknown=(3, 5))


@on_device
@pytest.mark.parametrize(("groups", "room"), [(1, 1), (7, 3), (16, 16), (17, 17), (40, 5)])
def test_groups_of_all_minima(device: str, groups: int, room: int, monkeypatch: Any) -> None:
    monkeypatch.setattr(tuning, "LIMIT_SLOTS", 16)
    minima = np.random.default_rng(0).standard_normal((9, groups + 3)).astype(np.float32)[:, :groups]
    minima[:, -1] = np.inf  # a group of padding
    scores = np.linspace(-3, 3, 9).astype(np.float32)
    scores[4], scores[5], scores[6] = minima[4, 0], np.inf, -np.inf
    expected = [set(np.flatnonzero((minima[row] <= scores[row]) & (minima[row] < np.inf)).tolist()) for row in range(9)]
    wide = there(device, np.pad(minima, ((0, 0), (0, 5)), constant_values=-9))[0][:, :groups]  # rows with a stride
    agree(near_minima(wide, *there(device, scores), room), expected)


@on_device
@pytest.mark.parametrize("group", [8, 32])
@pytest.mark.parametrize(
    ("n", "p", "parts"),
    [
        (1, 2, 16),
        (POINT_TILE - 1, 7, 1),
        (POINT_TILE, 32, 2),
        (POINT_TILE + 1, 64, 16),
        *((300, 100, parts) for parts in (1, 2, 16)),  # more members than a program takes at once
    ],
)
def test_members(device: str, n: int, p: int, parts: int, group: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """One program for each row, or several, including more programs than there is work for."""
    m = 5
    monkeypatch.setattr(tuning, "LIMIT_PARTS", parts)
    points, queries = gaussian(n, p), gaussian(m, p, 1)
    rng = np.random.default_rng(2)
    count = group_count(n, group)
    squares = ((queries[:, None].astype(np.float64) - points.astype(np.float64)) ** 2).sum(2)
    limits = np.median(squares, axis=1).astype(np.float32) * np.float32(1.001)
    limits[1], limits[2] = np.inf, 0
    own = np.array([0, 0, 0, n - 1, -1])
    numbers = np.stack([rng.permutation(count) for _ in range(m)]).astype(np.int32)
    found = np.array([count, count, count, max(1, count // 2), 0], np.int32)
    for left_out in (None, own):
        expected = []
        for row in range(m):
            candidates = {int(i) for g in numbers[row, : found[row]] for i in members(np.array(g), group) if i < n}
            candidates -= set() if left_out is None else {int(left_out[row])}
            expected.append({i for i in candidates if squares[row, i] <= limits[row]})
        given = there(device, queries, points, limits)
        groups = Near(*there(device, numbers, found))
        ids = None if left_out is None else there(device, left_out)[0]
        for room in (1, n + 1):
            answer = near_members(*given, groups, room, group=group, own=ids)
            agree(answer, expected)
            if room > n:
                rest = [
                    set(row[size:]) for row, size in zip(answer.numbers.tolist(), answer.found.tolist(), strict=True)
                ]
                assert all(one == {-1} for one in rest)


@on_device
def test_rows_without_all_their_groups_have_no_members(device: str) -> None:
    points = gaussian(64, 4)
    groups = Near(*there(device, np.zeros((2, 3), np.int32), np.array([4, 2**31 - 1], np.int32)))
    limits = np.full(2, np.inf, np.float32)
    found = near_members(*there(device, points[:2], points, limits), groups, 64, group=8, own=None)
    assert (found.numbers == -1).all()
    assert not groups.whole.any()


@on_device
@pytest.mark.parametrize("few", [0, 128])
def test_members_of_other_groups_come_behind(device: str, few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where those that are there take part of the room, or all of it."""
    points, rows = gaussian(64, 4), 2
    monkeypatch.setattr(tuning, "LIMIT_FEW", few)
    given = there(device, points[:rows], points, np.full(rows, np.inf, np.float32))
    parts, single = np.array([[0], [3]], np.int32), np.array([[40, 63, 50], [33, 60, 0]], np.int32)
    groups = Near(*there(device, parts, np.ones(rows, np.int32)))
    alone = Near(*there(device, single, np.array([3, 2], np.int32)))
    expected = [
        set(members(parts[row].astype(np.int64), 8).ravel()) | set(single[row, :count])
        for row, count in ((0, 3), (1, 2))
    ]
    for room in (64, 9, 4):
        first = near_members(*given, groups, room, group=8, own=None)
        agree(near_members(*given, alone, room, group=1, own=None, beside=first), expected)


@on_device
def test_limits_allow_for_sums_in_float32(device: str) -> None:
    """Float32 sums exceed the true squares; the allowance of `contracted_limits` prevents the loss of members."""
    p = 1000
    points = (1 + gaussian(200, p) * np.float32(1e-3)).astype(np.float32)
    query = np.zeros((1, p), np.float32)
    squares = (points.astype(np.float64) ** 2).sum(1)
    limit = np.sort(squares)[100]
    groups = Near(
        *there(device, np.arange(group_count(200, 8), dtype=np.int32)[None], np.array([group_count(200, 8)], np.int32))
    )
    raised = np.array([limit * (1 + (p + 8) * 2.0**-23)], np.float32)
    found = near_members(*there(device, query, points, raised), groups, 256, group=8, own=None)
    inside = set(np.flatnonzero(squares <= limit).tolist())
    assert inside <= set(found.numbers[0, : int(found.found)].tolist())


@on_device
def test_codes(device: str) -> None:
    """Codes are members like other rows, with any stride; marked codes are not."""
    rng = np.random.default_rng(0)
    codes = rng.integers(-9, 10, (130, 32)).astype(np.int8)
    codes[[5, 129], 0] = -128
    queries = gaussian(2, 7)
    squares = ((queries[:, None].astype(np.float64) - codes[None, :, :7]) ** 2).sum(2)
    limits = np.array([np.inf, np.median(squares[1])], np.float32)
    groups = np.tile(np.arange(group_count(130, 8), dtype=np.int32), (2, 1))
    found = np.full(2, groups.shape[1], np.int32)
    asked, rows, most, numbers, counts = there(device, queries, codes, limits, groups, found)
    near = near_members(asked, rows[:, :7], most, Near(numbers, counts), 130, group=8, own=None)
    expected = [set(np.flatnonzero((squares[row] <= limits[row]) & (codes[:, 0] != -128)).tolist()) for row in range(2)]
    assert len(expected[0]) == 128
    agree(near, expected)
