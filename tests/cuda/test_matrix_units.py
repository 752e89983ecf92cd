"""The probe of matrix units accepts sums that lose no more than exact search assumes, and refuses all known worse ones.

Without a CUDA device the kernel runs in Triton's interpreter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace

import numpy as np
import numpy.typing as npt
import pytest

import tonari
from tests.helpers.devices import HAS_TORCH, needs_torch, on_device, on_gpu
from tonari.core.errors import Unsupported
from tonari.cuda import matrix_units
from tonari.cuda.matrix_units import ROWS, WIDTH, Probe, make_probe, products, within_bounds

if HAS_TORCH:
    import torch

pytestmark = needs_torch

Sum = Callable[[npt.NDArray[np.float64], npt.NDArray[np.float64]], npt.NDArray[np.float64]]


def summed(sum_from: Sum, probe: Probe) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    """Compute the probe's sums by a model of matrix units: (terms (n, n, WIDTH), starts (n, n)) -> sums."""
    terms = probe.queries.astype(np.float64)[:, None, :] * probe.points.astype(np.float64)[None, :, :]
    low = np.broadcast_to(probe.low.astype(np.float64), terms.shape[:2])
    plain, started = sum_from(terms, np.zeros_like(low)), sum_from(terms, low)
    return plain.astype(np.float32), started.astype(np.float32)


def rounded_to(bits: int, x: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    mantissa, exponent = np.frexp(x)
    return np.ldexp(np.rint(mantissa * 2.0**bits), exponent - bits)


def truncated_to(bits: int, x: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    mantissa, exponent = np.frexp(x)
    return np.ldexp(np.trunc(mantissa * 2.0**bits), exponent - bits)


def one_by_one(bits: int, order: slice = slice(None)) -> Sum:
    """Add terms one after the other, and round each sum to this number of bits."""

    def add(terms: npt.NDArray[np.float64], start: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        total = start
        for term in np.moveaxis(terms, -1, 0)[order]:
            total = rounded_to(bits, total + term)
        return total

    return add


def aligned_runs(bits: int, length: int) -> Sum:
    """Align the terms of a run and the sum to the largest of them, truncate them to this number of bits, and add."""

    def add(terms: npt.NDArray[np.float64], start: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        total = start
        for begin in range(0, WIDTH, length):
            run = np.concatenate([terms[..., begin : begin + length], total[..., None]], -1)
            _, exponent = np.frexp(np.abs(run).max(-1, keepdims=True))
            total = np.ldexp(np.trunc(np.ldexp(run, bits - exponent)).sum(-1), exponent[..., 0] - bits)
            total = truncated_to(24, total)
        return total

    return add


@pytest.mark.parametrize(
    "sum_from",
    [one_by_one(24), one_by_one(24, slice(None, None, -1)), lambda t, s: t.sum(-1) + s]
    + [aligned_runs(bits, length) for bits in (24, 25, 27) for length in (4, 8, 16, 32)],
)
def test_sums_that_are_right_pass(sum_from: Sum) -> None:
    probe = make_probe()
    assert within_bounds(probe, *summed(sum_from, probe))


@pytest.mark.parametrize("length", [4, 8, 16, 32])
@pytest.mark.parametrize("bits", [11, 14, 16, 18, 19, 20, 21, 22])
def test_runs_aligned_to_fewer_bits_do_not_pass(bits: int, length: int) -> None:
    """A row of 16 columns loses 60 units with 22 bits, 480 with 19; 32 are assumed."""
    probe = make_probe()
    assert not within_bounds(probe, *summed(aligned_runs(bits, length), probe))


@pytest.mark.parametrize("bits", [11, 14, 16, 18, 19, 20, 21])
def test_sums_held_in_fewer_bits_do_not_pass(bits: int) -> None:
    probe = make_probe()
    assert not within_bounds(probe, *summed(one_by_one(bits), probe))


def test_subnormal_elements_taken_for_zero_do_not_pass() -> None:
    probe = make_probe()
    queries, points = (np.where(np.abs(part) < 2.0**-14, np.float16(0), part) for part in probe[:2])
    assert not within_bounds(probe, *summed(one_by_one(24), Probe(queries, points, probe.low)))


def test_elements_held_in_fewer_bits_do_not_pass() -> None:
    probe = make_probe()
    queries, points = (rounded_to(8, part.astype(np.float64)).astype(np.float16) for part in probe[:2])
    assert not within_bounds(probe, *summed(one_by_one(24), Probe(queries, points, probe.low)))


@pytest.mark.parametrize("which", [0, 1])
def test_a_single_wrong_sum_does_not_pass(which: int) -> None:
    probe = make_probe()
    sums = summed(one_by_one(24), probe)
    sums[which][ROWS - 1, 0] = np.nan
    assert not within_bounds(probe, *sums)


@on_device
def test_the_device_at_hand_adds_as_assumed(device: str) -> None:
    probe = make_probe()
    plain, started = products(probe, torch.device(device))
    assert plain.shape == started.shape == (ROWS, ROWS)
    assert within_bounds(probe, plain, started)


@pytest.fixture
def imprecise(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Let every CUDA device add like one that flushes subnormal numbers; return the devices that were probed."""
    asked = []

    def flushed(probe: Probe, device: object) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
        asked.append(str(device))
        queries, points = (np.where(np.abs(part) < 2.0**-14, np.float16(0), part) for part in probe[:2])
        return summed(one_by_one(24), Probe(queries, points, probe.low))

    monkeypatch.setattr(matrix_units, "products", flushed)
    matrix_units._adds_as_assumed.cache_clear()
    yield asked
    matrix_units._adds_as_assumed.cache_clear()


def test_a_device_that_fails_is_refused_and_asked_once(imprecise: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: "a card")
    for _ in range(3):
        with pytest.raises(Unsupported, match=r"cuda:7 \(a card\).*kdtree"):
            matrix_units.check_matrix_units(torch.device("cuda:7"))
    assert imprecise == ["cuda:7"]


@pytest.mark.parametrize(("asked", "bits", "refused"), [("1", "40", True), ("1", "52", True), ("1", "53", False)])
def test_float64_of_fewer_bits_is_refused(
    asked: str, bits: str, refused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An environment variable may lower the precision of cuBLAS, whose products the bounds rely on."""
    monkeypatch.setenv("CUBLAS_FIXEDPOINT_EMULATION_MANTISSA_BIT_COUNT", bits)
    monkeypatch.setattr(matrix_units, "_adds_as_assumed", lambda device: True)
    device = torch.device("cuda:0")
    matrix_units.check_matrix_units(device)  # Without the other variable, the number of bits has no effect.
    monkeypatch.setenv("CUBLAS_EMULATE_DOUBLE_PRECISION", asked)
    if refused:
        with pytest.raises(Unsupported, match=f"BIT_COUNT={bits} .*needs at least 53; unset CUBLAS_EMULATE_DOUBLE"):
            matrix_units.check_matrix_units(device)
    else:
        matrix_units.check_matrix_units(device)


def test_the_interpreter_is_not_asked(imprecise: list[str]) -> None:
    matrix_units.check_matrix_units(SimpleNamespace(type="cpu"))
    assert imprecise == []


@on_gpu
def test_a_search_on_a_card_that_fails_is_refused(imprecise: list[str]) -> None:
    points = torch.rand((600, 24), device="cuda")
    with pytest.raises(Unsupported, match="matrix units"):
        tonari.search(points[:5], points, 3, method="exact")
    assert tonari.search(points[:5], points, 3, metric="l1", method="exact").indices[:, 0].tolist() == [0, 1, 2, 3, 4]
    assert len(imprecise) == 1
