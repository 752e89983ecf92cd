"""Contractions: no two rows move farther apart, for any rows and directions, up to the stated errors.

Without a CUDA device the kernel runs in Triton's interpreter.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.helpers.checks import HOSTILE, Array, gaussian
from tests.helpers.devices import HAS_TORCH, needs_torch, on_device
from tests.helpers.gpu_checks import rows_of, tensors
from tonari.exact.cuda import tuning
from tonari.exact.cuda.rows.form import make_form
from tonari.exact.cuda.rows.pack import new_flags
from tonari.inputs.arrays.values import NO_ROW

if HAS_TORCH:
    import torch

    from tonari.exact.cuda.rows import contraction
    from tonari.exact.cuda.rows.contraction import contract, contracted_room, contracted_row_bytes, contraction_of

pytestmark = needs_torch

Long = np.longdouble  # 64 bits: true distances need more digits than float64


def contracted(device: str, rows: Array, metric: str, p: int) -> tuple[Array, Array, Any]:
    """Return rows in p coordinates with their errors, and the contraction."""
    (there,) = tensors(device, rows)
    by = contraction_of(there, make_form(there, metric), p)
    flags = new_flags(there.device)
    made = contract(there, by, flags)
    assert flags.tolist() == [NO_ROW] * 3
    return made.values.cpu().numpy().astype(Long), made.errors.cpu().numpy(), by


def true_distances(rows: Array, metric: str, scale: float) -> Array:
    """Return the distances of all pairs of form rows."""
    x = rows.astype(Long)
    if metric == "correlation":
        x = x - x.mean(1, keepdims=True)
        x[(rows == rows[:, :1]).all(1)] = 0
    if metric in ("cosine", "correlation"):
        norms = np.sqrt((x * x).sum(1, keepdims=True))
        x = np.divide(x, norms, out=np.zeros_like(x), where=norms > 0)
    return np.asarray(scale * np.sqrt(((x[:, None] - x[None]) ** 2).sum(2)))


def check_bound(device: str, rows: Array, metric: str, p: int) -> None:
    values, errors, by = contracted(device, rows, metric, p)
    assert values.shape == (len(rows), p)
    sound = np.isfinite(errors)
    found = np.sqrt(((values[:, None] - values[None]) ** 2).sum(2))
    truth = true_distances(rows, metric, float(by.form.scale)) * (1 + float(by.stretch))
    bound = truth + errors[:, None] + errors[None]
    assert (found <= bound)[sound][:, sound].all()
    assert float(by.stretch) < 1e-10
    sizes = np.sqrt((values * values).sum(1)) + float(torch.linalg.vector_norm(by.origin))
    assert (errors <= 2.0**-23 * sizes + 1e-25)[sound].all()  # a bound that excludes nothing would be useless


@on_device
@pytest.mark.parametrize("metric", ["euclidean", "sqeuclidean", "cosine", "correlation"])
@pytest.mark.parametrize("name", HOSTILE)
def test_no_two_rows_come_further_apart(device: str, metric: str, name: str) -> None:
    check_bound(device, HOSTILE[name](40, 9, 0), metric, 4)


@on_device
@pytest.mark.parametrize(("n", "d", "p"), [(1, 3, 2), (7, 35, 2), (33, 35, 34), (17, 130, 32)])
def test_shapes(device: str, n: int, d: int, p: int) -> None:
    check_bound(device, gaussian(n, d), "euclidean", p)


@on_device
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64", "uint8", "int8"])
def test_dtypes(device: str, dtype: str) -> None:
    check_bound(device, rows_of(20, 9, dtype), "euclidean", 4)


@on_device
def test_rows_of_few_dimensions_keep_their_distances(device: str) -> None:
    rows = gaussian(40, 3) @ gaussian(3, 30, 1)
    values, _, by = contracted(device, rows, "euclidean", 4)
    found = np.sqrt(((values[:, None] - values[None]) ** 2).sum(2))
    np.testing.assert_allclose(found, true_distances(rows, "euclidean", float(by.form.scale)), rtol=1e-4, atol=1e-3)


@on_device
def test_what_the_directions_leave_out_is_a_coordinate(device: str) -> None:
    """Two rows differ only in the length of the part that is left out; without this coordinate they would be equal."""
    rows = np.zeros((60, 12), np.float32)
    rows[:, :3] = 10 * gaussian(60, 3)
    rows[-2:] = rows[0]
    rows[-1, 7] = 1
    values, _, by = contracted(device, rows, "euclidean", 4)
    assert abs(np.sqrt(((values[-1] - values[-2]) ** 2).sum()) / float(by.form.scale) - 1) < 0.05


@on_device
def test_any_directions_will_do(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With directions that are too long, rows move apart by no more than the measured error."""
    rows = gaussian(30, 3) @ gaussian(3, 20, 1)
    principal = contraction.principal
    monkeypatch.setattr(contraction, "principal", lambda *given: principal(*given) * 1.01)
    values, errors, by = contracted(device, rows, "euclidean", 4)
    found = np.sqrt(((values[:, None] - values[None]) ** 2).sum(2))
    truth = true_distances(rows, "euclidean", float(by.form.scale))
    slack = errors[:, None] + errors[None]
    assert (found > truth + slack).any()
    assert (found <= truth * (1 + float(by.stretch)) + slack).all()
    assert 0.01 < float(by.stretch) < 0.1


@on_device
def test_refused_rows_lower_the_flags(device: str) -> None:
    rows = gaussian(40, 5).astype(np.float64)
    rows[21, 3], rows[33, 0] = np.nan, 1e151
    (there,) = tensors(device, rows)
    by = contraction_of(there, make_form(there, "euclidean"), 3)
    flags = new_flags(there.device)
    made = contract(there, by, flags, first=100)
    assert flags.tolist() == [121, 133, NO_ROW]
    assert np.flatnonzero(np.isinf(made.errors.cpu().numpy())).tolist() == [21, 33]
    assert (made.values[[21, 33]] == contraction.BEYOND).all()


@on_device
def test_rows_beyond_range_have_no_contraction(device: str) -> None:
    rows = np.full((30, 4), 1e-150)
    rows[3:] = gaussian(27, 4)
    (there,) = tensors(device, rows)
    flags = new_flags(there.device)
    made = contract(there, contraction_of(there, make_form(there, "cosine"), 3), flags)
    assert flags.tolist() == [NO_ROW] * 3
    assert np.flatnonzero(np.isinf(made.errors.cpu().numpy())).tolist() == [0, 1, 2]


@on_device
def test_blocks_leave_no_trace(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = gaussian(50, 9)
    whole, errors, _ = contracted(device, rows, "cosine", 4)
    monkeypatch.setattr(tuning, "FORM_VALUES", 9 * 16)
    parts, others, _ = contracted(device, rows, "cosine", 4)
    np.testing.assert_allclose(parts.astype(float), whole.astype(float), rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(others, errors, rtol=1e-6)


def test_bytes_are_those_of_the_tensors() -> None:
    rows = contracted_room(7, 5, "cpu")
    nbytes = sum(part.numel() * part.element_size() for part in (rows.values, rows.errors))
    assert nbytes == 7 * contracted_row_bytes(5)
