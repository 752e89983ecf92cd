"""Codes: no two of them are further apart than their rows, up to the errors that are measured.

Without a CUDA device the kernels run in Triton's interpreter.
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
    """The codes of rows as points and as queries, and the largest error of the points."""
    (there,) = tensors(device, rows)
    coding = coding_of(there if by is None else tensors(device, by)[0], metric, p)
    flags, room = new_flags(there.device), codes_for(len(rows), p, there.device)
    farthest, beyond = code_points(there, coding, flags, first=0, room=room)
    asked = code_queries(there, coding, flags, first=0)
    assert flags.tolist() == [NO_ROW] * 3
    return room, asked, coding, float(farthest), int(beyond)


def check_bound(device: str, rows: Array, metric: str, p: int, by: Array | None = None) -> Array:
    room, asked, coding, farthest, beyond = coded(device, rows, metric, p, by)
    n = len(rows)
    points, queries = (part[:n, :p].cpu().numpy().astype(Long) for part in (room.values, asked.packed.values))
    low = room.low.cpu().numpy()
    marked = low[:n] == np.float32(-1e30)
    assert marked.sum() == beyond
    assert (points[marked] == -128).all()
    assert np.abs(points[~marked]).max(initial=0) <= 127
    assert np.array_equal(low[:n][~marked], (points[~marked] ** 2).sum(1).astype(np.float32))
    assert (low[n:] == np.inf).all()
    assert not room.values[n:].any()
    assert not room.e1.any()
    assert not room.e2.any()
    assert farthest <= np.sqrt(p) / 2 + 1e-3  # half a step of each coordinate: a bound that says nothing is no good
    truth = true_distances(rows, metric, float(coding.by.form.scale)) * (1 + float(coding.by.stretch))
    rounded, errors = asked.rows.values.cpu().numpy().astype(Long), asked.rows.errors.cpu().numpy()
    for asking, apart in ((queries, asked.apart.cpu().numpy()), (rounded, errors)):
        found = np.sqrt(((asking[:, None] - points[None]) ** 2).sum(2))
        bound = truth + apart[:, None] + farthest
        sound = np.isfinite(apart)[:, None] & ~marked[None]
        assert (found <= bound)[sound].all()
    return marked


# Of the hostile data, what the thin suite takes.
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
    """They are four times as large as the rows by which the steps are chosen, which are far below the largest step."""
    rows = gaussian(40, 9)
    rows[[3, 17]] *= 50
    assert check_bound(device, rows, "euclidean", 4, by=gaussian(40, 9, 1)).tolist() == [
        at in (3, 17) for at in range(40)
    ]


@on_device
def test_a_few_rows_far_away_do_not_make_the_steps_long(device: str) -> None:
    rows = gaussian(2000, 5)
    rows[7] = 1e6
    room, _, coding, _, beyond = coded(device, rows, "euclidean", 4)
    assert beyond == 1
    assert float(coding.by.form.scale) > 1
    assert np.abs(room.values[:2000].cpu().numpy().astype(int)).max(1).mean() > 8


@on_device
def test_a_point_takes_68_bytes(device: str) -> None:
    room = codes_for(1280, 64, torch.device(device))
    assert (
        sum(part.nbytes for part in (room.values, room.low, room.e1, room.e2))
        == codes_bytes(1280, 64)
        == 1280 * 68 + 80
    )


@on_device
def test_rows_that_searches_refuse_are_named(device: str) -> None:
    rows = gaussian(20, 9)
    rows[6, 2] = np.nan
    (there,) = tensors(device, rows)
    coding, flags = coding_of(tensors(device, gaussian(20, 9))[0], "euclidean", 4), new_flags(there.device)
    room = codes_for(20, 4, there.device)
    code_points(there, coding, flags, first=100, room=room)
    assert flags.tolist()[0] == 106
    assert float(room.low[6]) == np.float32(-1e30)
    assert float(code_queries(there, coding, flags, first=0).apart[6]) == np.inf


def test_the_rotation_is_the_same_every_time() -> None:
    one, two = (codes._rotation(5, torch.device("cpu")) for _ in range(2))
    assert torch.equal(one, two)
    assert torch.allclose(one @ one.mT, torch.eye(5, dtype=torch.float64))
