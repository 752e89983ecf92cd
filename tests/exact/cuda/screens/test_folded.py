"""Minima and lists of folded products, compared with NumPy.

Without a GPU, the kernels run in Triton's interpreter.
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.helpers.checks import gaussian
from tests.helpers.devices import HAS_TORCH, needs_torch, on_device, on_gpu
from tests.helpers.gpu_checks import tensors
from tonari.exact.cuda import tuning
from tonari.exact.cuda.rows.groups import LISTED, group_count, members

pytestmark = needs_torch
if HAS_TORCH:
    from tonari.exact.cuda.rows.codes import code_points, code_queries, codes_for, coding_of
    from tonari.exact.cuda.rows.pack import new_flags
    from tonari.exact.cuda.screens.coded import screen_folded, screen_folded_below


@on_device
@pytest.mark.parametrize(
    ("n", "d", "p"), [(130, 9, 5), (300, 80, 61), pytest.param(520, 200, 130, marks=pytest.mark.full)]
)
@pytest.mark.parametrize("group", [8, 32])
def test_minima_and_lists(device: str, n: int, d: int, p: int, group: int) -> None:
    import torch

    m = 17
    points, queries = tensors(device, gaussian(n, d), gaussian(m, d, 1))
    coding, flags = coding_of(points, "euclidean", p), new_flags(points.device)
    codes = codes_for(n, p, points.device)
    code_points(points, coding, flags, first=0, room=codes)
    asked = code_queries(queries, coding, flags, first=0)
    c, q = codes.values[:, :p].cpu().numpy().astype(np.int64), asked.values[:, :p].cpu().numpy().astype(np.int64)
    scores = (c**2).sum(1) // 2 * 2 - 2 * (q @ c.T)
    scores[:, n:] = 4 * codes.offset
    count = group_count(n, group)
    expected = scores[:, members(np.arange(count), group)].min(2)
    minima = torch.empty((m, count), dtype=torch.float32, device=points.device)
    screen_folded(asked.values, codes, group, minima)
    assert np.array_equal(minima.cpu().numpy(), expected.astype(np.float32))
    if group != 8:
        return
    thresholds = np.quantile(scores[:, :n], 0.2, axis=1).round().astype(np.float32)
    lists = screen_folded_below(asked.values, codes, tensors(device, thresholds)[0], group_count(n, LISTED), 0)
    values, entries = lists.values.cpu().numpy(), lists.entries.cpu().numpy()
    for row in range(m):
        found = [divmod(int(entry), 16) for entry in entries[row][values[row] < np.inf]]
        parts = {one // 4 * 16 + 4 * part + one % 4 for one, mask in found for part in range(4) if mask >> part & 1}
        assert parts == set(np.flatnonzero(expected[row] <= thresholds[row]).tolist())


@on_gpu
@pytest.mark.parametrize(("d", "p"), [(20, 19), (80, 61), (128, 123), (250, 247)])
def test_hopper_lists_what_the_other_kernel_does(d: int, p: int, monkeypatch: pytest.MonkeyPatch) -> None:
    points, queries = tensors("cuda", gaussian(100_000, d), gaussian(700, d, 1))
    coding, flags = coding_of(points, "euclidean", p), new_flags(points.device)
    codes = codes_for(len(points), p, points.device)
    code_points(points, coding, flags, first=0, room=codes)
    asked = code_queries(queries, coding, flags, first=0).values
    scores = 2 * codes.offset - 2 * (asked.double() @ codes.values.double().mT)
    thresholds = scores[:, :100_000].kthvalue(50, dim=1).values.float()
    found = []
    for hopper in (True, False):
        monkeypatch.setattr(tuning, "FOLDED_HOPPER", hopper)
        lists = screen_folded_below(asked, codes, thresholds, 1024, 0)
        assert (lists.counts <= lists.room).all()
        values, entries = lists.values.cpu().numpy(), lists.entries.cpu().numpy()
        found.append([set(entries[row][values[row] < np.inf].tolist()) for row in range(700)])
    assert found[0] == found[1]
