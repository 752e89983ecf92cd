"""Where a search runs and where its arrays lie: what is asked for, what is refused, and what comes back.

There need not be a GPU: arrays that only say that they lie on one stand in for it, and kernels run in Triton's
interpreter. What needs a GPU is at the end.
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
from tonari import inputs
from tonari.inputs import Side, check_flags, devices_for, hand_back, place_of, side_of, to_host, tuning
from tonari.inputs.values import NO_ROW

if HAS_TORCH:
    import torch


class OnDevice:
    """As much of an array on a device as the border looks at before it reads one."""

    def __init__(self, kind: int = 2, number: int = 0, rows: Any = None) -> None:
        self.rows = np.zeros((4, 2), np.float32) if rows is None else rows
        self.shape, self.dtype = self.rows.shape, self.rows.dtype
        self._place = kind, number

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._place

    def __len__(self) -> int:
        return len(self.rows)


HOST = np.zeros((4, 2), np.float32)


@pytest.fixture
def two_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    """torch and Triton with two devices, the second of which is the current one."""
    fake = types.ModuleType("torch")
    fake.Tensor = type("Tensor", (), {})  # type: ignore[attr-defined]
    fake.cuda = types.SimpleNamespace(  # type: ignore[attr-defined]
        is_available=lambda: True, device_count=lambda: 2, current_device=lambda: 1
    )
    monkeypatch.setitem(sys.modules, "torch", fake)
    monkeypatch.setitem(sys.modules, "triton", types.ModuleType("triton"))


# ---------------------------------------------------------------- which device


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
    if missing == "triton":  # a tensor on CUDA without torch there cannot be
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


# ---------------------------------------------------------------- where an array lies


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


@pytest.mark.parametrize("library", ["cupy", "jax"])
def test_arrays_of_other_libraries(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Results go back through their own from_dlpack; torch has the array in between."""
    torch = types.ModuleType("torch")
    torch.Tensor = _Tensor  # type: ignore[attr-defined]
    torch.from_dlpack = lambda x: _Tensor(x.rows)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "torch", torch)
    theirs = types.ModuleType(library)
    theirs.ndarray = theirs.Array = OnDevice  # type: ignore[attr-defined]
    theirs.from_dlpack = lambda tensor: ("theirs", tensor)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, library, theirs)
    monkeypatch.setitem(sys.modules, f"{library}.dlpack", theirs)
    x = OnDevice(number=3)
    side = side_of(x, "queries")
    assert side == Side(library, "cuda:3")  # type: ignore[arg-type]
    assert hand_back(_Tensor(x.rows), side) == ("theirs", ("cuda:3", x.rows))
    assert np.shares_memory(to_host(x).numpy(), x.rows)
    with pytest.raises(ValueError, match=r"points: is on cuda:3, expected host memory; use (\.get\(\)|numpy\.asarray)"):
        inputs.as_rows(x, "points")


class _Tensor:
    """A tensor that notes where it was moved."""

    def __init__(self, rows: Any) -> None:
        self.rows, self.device = rows, types.SimpleNamespace(type="cpu")

    def to(self, place: str) -> Any:
        return place, self.rows

    def cpu(self) -> _Tensor:
        return self

    def numpy(self) -> Any:
        return self.rows


def test_an_unknown_library_on_cuda_gets_tensors() -> None:
    assert side_of(OnDevice(number=1), "queries") == Side("torch", "cuda:1")


@needs_torch
def test_results_go_back_to_the_host() -> None:
    part = np.arange(6, dtype=np.int32).reshape(2, 3)
    assert hand_back(part, Side("numpy", None)) is part
    assert np.shares_memory(hand_back(torch.from_numpy(part), Side("numpy", None)), part)
    assert np.shares_memory(hand_back(part, Side("torch", None)).numpy(), part)
    assert side_of(torch.zeros(2), "x") == Side("torch", None)
    assert to_host(part) is part


# ---------------------------------------------------------------- rows on a device


@needs_torch
@pytest.mark.parametrize("dtype", inputs.ACCEPTED_NAMES)
def test_good_rows_are_not_copied(dtype: str) -> None:
    x = torch.ones((6, 3), dtype=getattr(torch, dtype))
    for good in (x, x[::2], x[:, 1:], x[:1].expand(4, 3)):
        rows = inputs.as_device_rows(good, "points")
        assert rows.data_ptr() == good.data_ptr()
        assert rows.stride() == good.stride()


@needs_torch
def test_gradients_stay_behind() -> None:
    x = torch.ones((4, 3), requires_grad=True)
    rows = inputs.as_device_rows(x, "points")
    assert not rows.requires_grad
    assert rows.data_ptr() == x.data_ptr()


@needs_torch
def test_other_layouts_give_the_same_rows() -> None:
    x = torch.arange(24, dtype=torch.float32).reshape(6, 4)
    imaginary = torch.complex(x, -x).conj().imag  # a tensor whose memory holds the negative of its values
    assert imaginary.is_neg()
    for other in (x.t(), x[:, ::2], x[:, 1:2], x[:1].t(), imaginary):
        rows = inputs.as_device_rows(other, "points")
        assert rows.stride(1) == 1
        assert not rows.is_neg()
        assert torch.equal(rows, other)


@needs_torch
@pytest.mark.parametrize(
    ("x", "error", "message"),
    [
        (
            lambda: torch.zeros((2, 2), dtype=torch.float8_e5m2),
            TypeError,
            r"float8_e5m2 is not supported.*\.to\(torch.float32",
        ),
        (lambda: torch.zeros((2, 2), dtype=torch.int64), TypeError, r"points: int64 is not supported, only float32"),
        (lambda: torch.zeros((2, 2), dtype=torch.bool), TypeError, "bool is not supported"),
        (lambda: torch.zeros(5), ValueError, r"got \(5,\); use .reshape\(1, -1\)"),
        (lambda: torch.zeros((2, 3, 4)), ValueError, r"got \(2, 3, 4\); use .reshape\(2, -1\)"),
        (lambda: torch.zeros(()), ValueError, r"expected shape \(n, d\), got \(\)"),
        (lambda: torch.zeros((0, 4)), ValueError, r"shape \(0, 4\) is empty"),
        (lambda: torch.zeros((4, 0)), ValueError, r"shape \(4, 0\) is empty"),
        (lambda: torch.eye(3).to_sparse(), TypeError, r"sparse input .*to_dense"),
    ],
)
def test_refuses(x: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        inputs.as_device_rows(x(), "points")


@needs_torch
def test_arrays_that_torch_cannot_read() -> None:
    with pytest.raises(TypeError, match="points: torch cannot read it through DLPack: "):
        inputs.as_device_rows(OnDevice(), "points")


@needs_torch
def test_what_another_library_calls_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "from_dlpack", lambda x: torch.zeros((2, 2), dtype=torch.bfloat16))
    assert inputs.as_device_rows(OnDevice(), "points").dtype == torch.bfloat16
    monkeypatch.setattr(torch, "from_dlpack", lambda x: torch.zeros((2, 2), dtype=torch.float8_e5m2))
    with pytest.raises(TypeError, match=r"float8_e5m2 is not supported, .*try .astype\('float32'\)"):
        inputs.as_device_rows(OnDevice(), "points")


# ---------------------------------------------------------------- what kernels note


def bad_rows(dtype: str) -> dict[str, Any]:
    """Rows with one bad value, the flag it sets, and whether chi2 is what refuses it."""
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
        flags[flag] = 0  # a number within some batch or sample
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
