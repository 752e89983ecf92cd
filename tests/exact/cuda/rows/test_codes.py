"""Codes: no two codes are farther apart than their rows, up to the measured errors.

Without a GPU, the kernels run in Triton's interpreter.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.exact.cuda.rows.test_contraction import Long, true_distances
from tests.helpers.checks import HOSTILE, Array, gaussian
from tests.helpers.devices import HAS_TORCH, needs_torch, on_device
from tests.helpers.gpu_checks import rows_of, tensors
from tonari.exact.cuda import tuning
from tonari.exact.cuda.rows.pack import new_flags
from tonari.inputs.arrays.values import NO_ROW

if HAS_TORCH:
    import torch

    from tonari.exact.cuda.rows import codes
    from tonari.exact.cuda.rows.codes import code_points, code_queries, codes_bytes, codes_for, coding_of

pytestmark = needs_torch


def coded(device: str, rows: Array, metric: str, p: int, by: Any = None) -> tuple[Any, ...]:
    """Return the codes of rows as points and as queries, their map, and the errors of the points, -1 if marked."""
    (there,) = tensors(device, rows)
    coding = coding_of(there if by is None else tensors(device, by)[0], metric, p)
    flags, room = new_flags(there.device), codes_for(len(rows), p, there.device)
    apart = code_points(there, coding, flags, first=0, room=room)
    asked = code_queries(there, coding, flags, first=0)
    assert flags.tolist() == [NO_ROW] * 3
    return room, asked, coding, apart.cpu().numpy()


def check_bound(device: str, rows: Array, metric: str, p: int, by: Array | None = None) -> Array:
    room, asked, coding, errors_of_points = coded(device, rows, metric, p, by)
    n, farthest = len(rows), errors_of_points.max()
    whole, query = (part.cpu().numpy().astype(np.int64) for part in (room.values, asked.values))
    points, queries = whole[:n, :p].astype(Long), query[:, :p].astype(Long)
    marked = errors_of_points < 0
    assert (points[marked, 0] == -128).all()
    assert not points[marked, 1:].any()
    assert np.abs(whole[:n][~marked]).max(initial=0) <= 127
    assert np.abs(queries).max() <= 127
    # Products contain the squared lengths; those of padding and marked points are smallest.
    scores = 2 * room.offset - 2 * (query @ whole.T)
    lengths = (whole[:n, :p] ** 2).sum(1)
    expected = lengths // 2 * 2 - 2 * (query[:, :p] @ whole[:n, :p].T)
    assert np.array_equal(scores[:, :n][:, ~marked], expected[:, ~marked])
    assert (scores[:, n:] == 4 * room.offset).all()
    assert (np.abs(scores[:, :n][:, marked] - 4 * room.offset) <= 2 * 128 * 127).all()
    assert farthest <= np.sqrt(p) / 2 + 1e-3  # half a step of each coordinate: a bound that excludes nothing is useless
    truth = true_distances(rows, metric, float(coding.by.form.scale)) * (1 + float(coding.by.stretch))
    assert np.array_equal(asked.squares.cpu().numpy(), (query[:, :p] ** 2).sum(1).astype(np.float64))
    rounded, errors = asked.rows.values.cpu().numpy().astype(Long), asked.rows.errors.cpu().numpy()
    for asking, apart in ((queries, asked.apart.cpu().numpy()), (rounded, errors)):
        found = np.sqrt(((asking[:, None] - points[None]) ** 2).sum(2))
        bound = truth + apart[:, None] + farthest
        sound = np.isfinite(apart)[:, None] & ~marked[None]
        assert (found <= bound)[sound].all()
    return np.asarray(marked)


# The hostile data of the thin suite.
THIN = [("tight_far_clusters", "euclidean"), ("duplicates", "euclidean"), ("zero_rows", "cosine")]


@on_device
@pytest.mark.parametrize(
    ("name", "metric"),
    [
        pytest.param(name, metric, marks=() if (name, metric) in THIN else pytest.mark.full)
        for name in HOSTILE
        for metric in ("euclidean", "cosine")
    ],
)
def test_no_two_codes_are_further_apart(device: str, metric: str, name: str) -> None:
    check_bound(device, HOSTILE[name](40, 9, 0), metric, 4)


@on_device
@pytest.mark.parametrize(("n", "d", "p"), [(1, 3, 2), (7, 35, 2), (33, 35, 34), (129, 130, 64), (5, 300, 129)])
def test_shapes(device: str, n: int, d: int, p: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "FORM_VALUES", 3 * d)  # blocks of three rows
    check_bound(device, gaussian(n, d), "euclidean", p)


@on_device
def test_every_dtype(device: str) -> None:
    for dtype in ("float16", "bfloat16", "float64", "uint8", "int8"):
        check_bound(device, rows_of(20, 9, dtype), "sqeuclidean", 5)


@on_device
def test_points_beyond_the_sample_are_marked(device: str) -> None:
    """They are four times as large as the rows that choose the steps, which are far below the largest step."""
    rows = gaussian(40, 9)
    rows[[3, 17]] *= 50
    assert check_bound(device, rows, "euclidean", 4, by=gaussian(40, 9, 1)).tolist() == [
        at in (3, 17) for at in range(40)
    ]


@on_device
def test_points_with_codes_too_long_are_marked(device: str) -> None:
    """Each coordinate of the row is as large as the largest of the other rows, so the row is far longer than they
    are."""
    sample = np.vstack([np.eye(29), -np.eye(29)]).astype(np.float32)
    rows = np.vstack([sample, np.full((1, 29), 0.7, np.float32)])
    with_margin = check_bound(device, rows, "euclidean", 28, by=sample)
    assert not with_margin[:58].any()


@on_device
def test_a_few_rows_far_away_do_not_make_the_steps_long(device: str) -> None:
    rows = gaussian(2000, 5)
    rows[7] = 1e6
    room, _, coding, apart = coded(device, rows, "euclidean", 4)
    assert np.flatnonzero(apart < 0).tolist() == [7]
    assert float(coding.by.form.scale) > 1
    assert np.abs(room.values[:2000, :4].cpu().numpy().astype(int)).max(1).mean() > 8


@on_device
def test_a_point_takes_64_bytes(device: str) -> None:
    room = codes_for(1280, 61, torch.device(device))
    assert room.values.nbytes == codes_bytes(1280, 61) == 1280 * 64


@on_device
def test_codes_of_some_points(device: str) -> None:
    rows = gaussian(300, 6)
    room = coded(device, rows, "euclidean", 5)[0]
    some = room.every(3)
    assert torch.equal(some.values[:100], room.values[:300:3])
    assert torch.equal(some.values[100:], room.values[300:328])
    part = room.part(slice(128, 300))
    assert torch.equal(part.values, room.values[128:])
    assert part.n == 172


@on_device
def test_rows_that_searches_refuse_are_named(device: str) -> None:
    rows = gaussian(20, 9)
    rows[6, 2] = np.nan
    (there,) = tensors(device, rows)
    coding, flags = coding_of(tensors(device, gaussian(20, 9))[0], "euclidean", 4), new_flags(there.device)
    room = codes_for(20, 4, there.device)
    apart = code_points(there, coding, flags, first=100, room=room)
    assert flags.tolist()[0] == 106
    assert np.flatnonzero(apart.cpu().numpy() < 0).tolist() == [6]
    assert float(code_queries(there, coding, flags, first=0).apart[6]) == np.inf


def test_the_rotation_is_the_same_every_time() -> None:
    one, two = (codes._rotation(5, torch.device("cpu")) for _ in range(2))
    assert torch.equal(one, two)
    assert torch.allclose(one @ one.mT, torch.eye(5, dtype=torch.float64))
