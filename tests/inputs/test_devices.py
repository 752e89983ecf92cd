"""The devices of a search and of its arrays: requests, refusals and results.

No GPU is needed: arrays that claim to be on a GPU are stand-ins, and kernels run in Triton's interpreter. Tests that
need a GPU are at the end.
"""

from __future__ import annotations

import sys
import types
from typing import Any

import numpy as np
import pytest

import tonari
from tests.helpers import checks
from tests.helpers.devices import HAS_TORCH, needs_torch
from tests.helpers.on_device import OnDevice
from tonari import inputs
from tonari.inputs import check_flags, devices_for, place_of, tuning
from tonari.inputs.arrays.values import NO_ROW

if HAS_TORCH:
    import torch


HOST = np.zeros((4, 2), np.float32)


@pytest.fixture
def two_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make torch and Triton report two devices; the second one is current."""
    fake = types.ModuleType("torch")
    fake.Tensor = type("Tensor", (), {})  # type: ignore[attr-defined]
    fake.cuda = types.SimpleNamespace(  # type: ignore[attr-defined]
        is_available=lambda: True, device_count=lambda: 2, current_device=lambda: 1
    )
    monkeypatch.setitem(sys.modules, "torch", fake)
    monkeypatch.setitem(sys.modules, "triton", types.ModuleType("triton"))


@pytest.mark.usefixtures("two_gpus")
@pytest.mark.parametrize(
    ("device", "place", "expected"),
    [
        ("auto", None, ()),
        ("cpu", None, ()),
        ("auto", 0, ("cuda:0",)),
        ("auto", 1, ("cuda:1",)),
        ("cuda", None, ("cuda:1",)),
        ("cuda", 0, ("cuda:0",)),
        ("cuda:0", None, ("cuda:0",)),
        ("cuda:1", 1, ("cuda:1",)),
        ("cuda:all", None, ("cuda:0", "cuda:1")),
        ("cuda:all", 1, ("cuda:0", "cuda:1")),
        (["cuda:1"], None, ("cuda:1",)),
        (("cuda:1", "cuda:0"), None, ("cuda:1", "cuda:0")),
    ],
)
def test_devices(device: Any, place: int | None, expected: tuple[str, ...]) -> None:
    given = HOST if place is None else OnDevice(number=place)
    assert devices_for(device, points=given) == expected
    assert devices_for(device, queries=given, points=given) == expected


@pytest.mark.usefixtures("two_gpus")
def test_host_memory_goes_where_the_other_array_lies_if_a_device_is_named() -> None:
    assert devices_for("cuda", queries=HOST, points=OnDevice(number=0)) == ("cuda:0",)
    assert devices_for("cuda:0", queries=OnDevice(number=0), points=HOST) == ("cuda:0",)


@pytest.mark.usefixtures("two_gpus")
@pytest.mark.parametrize(
    ("device", "given", "message"),
    [
        ("gpu", {}, r"device='gpu': expected \"auto\", \"cpu\", \"cuda\", a device such as \"cuda:1\""),
        ("CPU", {}, "device='CPU': expected"),
        ("cudafoo", {}, "device='cudafoo': expected"),
        ("cuda:", {}, "device='cuda:': expected"),
        ("cuda:-1", {}, "device='cuda:-1': expected"),
        ("cuda:0,cuda:1", {}, "device='cuda:0,cuda:1': expected"),
        (None, {}, "device=None: expected"),
        (0, {}, "device=0: expected"),
        ([], {}, r"device=\[\]: expected at least one device"),
        (["cuda:0", "cuda:0"], {}, "each of them once"),
        (["cuda:0", "cpu"], {}, r"expected devices such as \"cuda:0\" in the list, got 'cpu'"),
        (["cuda"], {}, "in the list, got 'cuda'"),
        ("cuda:2", {}, "device='cuda:2': this machine has no cuda:2, only cuda:0, cuda:1"),
        (["cuda:0", "cuda:7"], {}, "this machine has no cuda:7, only"),
        (
            "auto",
            {"queries": HOST, "points": OnDevice()},
            'queries in host memory and points on cuda:0, expected all on the same device; pass device="cuda:0"',
        ),
        (
            "auto",
            {"queries": OnDevice(number=1), "points": OnDevice()},
            r'queries on cuda:1 and points on cuda:0, expected all on the same device; move one with .to\("cuda:1"\)',
        ),
        ("cuda", {"queries": OnDevice(number=1), "points": OnDevice()}, "queries on cuda:1 and points on cuda:0"),
        ("cpu", {"points": OnDevice()}, 'points: is on cuda:0, but device="cpu"; copy it to host memory, or leave'),
        ("cuda:1", {"points": OnDevice()}, "points: is on cuda:0, but device='cuda:1'; move it with .* to cuda:1, or"),
    ],
)
def test_devices_that_cannot_be(device: Any, given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        devices_for(device, **given)


def test_a_machine_without_a_gpu(monkeypatch: pytest.MonkeyPatch, two_gpus: None) -> None:
    monkeypatch.setattr(sys.modules["torch"].cuda, "is_available", lambda: False)
    for device in ("cuda", "cuda:0", "cuda:all", ["cuda:0"]):
        with pytest.raises(ValueError, match=r"this machine has no CUDA device that torch can use; use device=\"cpu\""):
            devices_for(device)


@pytest.mark.parametrize("missing", ["torch", "triton"])
def test_what_is_not_installed(missing: str, monkeypatch: pytest.MonkeyPatch, two_gpus: None) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(
        ImportError, match=r"device='cuda': searching there needs torch and Triton: pip install 'tonari\[gpu\]'"
    ):
        devices_for("cuda")
    if missing == "triton":  # without torch there can be no tensor on CUDA
        with pytest.raises(ImportError, match=r"points on CUDA: .*pip install 'tonari\[gpu\]'"):
            devices_for("auto", points=OnDevice())
    assert devices_for("auto", points=HOST) == ()


@needs_torch
def test_a_torch_device_is_a_name() -> None:
    assert inputs.parse_device(torch.device("cuda", 1)) == ("cuda:1",)
    assert inputs.parse_device(torch.device("cpu")) == "cpu"
    assert inputs.parse_device([torch.device("cuda", 1), "cuda:0"]) == ("cuda:1", "cuda:0")


def test_every_verb_asks_for_a_device() -> None:
    x = np.zeros((5, 2), np.float32)
    for call in (
        lambda: tonari.search(x, x, 1, device="gpu"),
        lambda: tonari.Index(x, device="gpu"),
        lambda: tonari.knn_graph(x, 1, device="gpu"),
        lambda: tonari.plan(5, 5, 2, 1, device="gpu"),
    ):
        with pytest.raises(ValueError, match="device='gpu': expected"):
            call()


def test_arrays_that_lie_apart_are_refused_by_the_verbs() -> None:
    x = np.zeros((5, 2), np.float32)
    with pytest.raises(ValueError, match="queries on cuda:0 and points in host memory"):
        tonari.search(OnDevice(), x, 1)
    with pytest.raises(ValueError, match="queries: is on cuda:0, expected host memory"):
        tonari.Index(x).search(OnDevice(), 1)


def test_places() -> None:
    assert place_of(np.zeros(3), "x") is None
    assert place_of([[1.0]], "x") is None
    assert place_of(OnDevice(1), "x") is None
    assert place_of(OnDevice(3), "x") is None  # pinned
    assert place_of(OnDevice(2, 5), "x") == "cuda:5"
    assert place_of(OnDevice(13, 1), "x") == "cuda:1"  # managed
    with pytest.raises(ValueError, match="points: is on device 3 of DLPack's type 8, expected host memory or a CUDA"):
        place_of(OnDevice(8, 3), "points")


def test_an_array_that_does_not_say_where_it_lies() -> None:
    class Sharded:
        def __dlpack_device__(self) -> tuple[int, int]:
            raise BufferError("on eight devices")

    with pytest.raises(ValueError, match="points: its library does not tell on which device it is: on eight devices"):
        place_of(Sharded(), "points")


def bad_rows(dtype: str) -> dict[str, Any]:
    """Make rows with one bad value; return also its flag, and whether only chi2 refuses it."""
    x = np.abs(checks.gaussian(40, 6)).astype(dtype)
    found = {}
    for flag, value in enumerate([np.nan, 1e151, -0.1]):
        if flag == 1 and dtype != "float64":
            continue
        rows = x.copy()
        rows[17, 3] = rows[17, 5] = rows[30, 0] = value
        found[str(flag)] = (rows, flag)
    return found


@pytest.mark.parametrize("tensors", [False, pytest.param(True, marks=needs_torch)])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_flags_say_what_the_host_says(dtype: str, tensors: bool) -> None:
    for rows, flag in bad_rows(dtype).values():
        with pytest.raises(ValueError, match="queries: row 17") as expected:
            tonari.search(rows, np.ones((3, 6), dtype), 1, metric="chi2")
        flags = [NO_ROW] * 3
        flags[flag] = 0  # a row number within some batch or sample
        noted = torch.tensor(flags) if tensors else flags
        with pytest.raises(ValueError, match="queries: row 17") as refused:
            check_flags(noted, torch.from_numpy(rows) if tensors else rows, "queries")
        assert str(refused.value) == str(expected.value)
        with pytest.raises(ValueError, match="queries: row 1017 has"):
            check_flags(noted, rows, "queries", first=1000)


@pytest.mark.parametrize("row", [0, 99, 100, 101, 249])
def test_the_first_row_is_found_part_by_part(row: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "CHECKED_VALUES", 300)
    x = np.ones((250, 3))
    x[row:, 2] = np.inf
    with pytest.raises(ValueError, match=rf"points: row {row} has .*\(inf in column 2\)"):
        check_flags([5, NO_ROW, NO_ROW], x, "points")


def test_a_flag_for_nothing_is_a_defect() -> None:
    with pytest.raises(AssertionError, match="points: a negative value was flagged, but no row has it"):
        check_flags([NO_ROW, NO_ROW, 1], np.ones((3, 2)), "points")


def test_flags_are_read_in_the_host_s_order() -> None:
    x = np.array([[-1.0], [1e200], [np.inf]])
    with pytest.raises(ValueError, match=r"row 2 has a value that is not finite"):
        check_flags([2, 1, 0], x, "points")
    with pytest.raises(ValueError, match=r"row 1 has a value whose square overflows"):
        check_flags([NO_ROW, 1, 0], x, "points")
    check_flags([NO_ROW] * 3, x, "points")
