"""Thresholds on a GPU, and the selection from the pairs that they leave.

Without a CUDA device the same tests run in Triton's interpreter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import pytest

from tests.helpers.devices import HAS_TORCH, needs_torch, on_device, on_gpu
from tests.helpers.select_checks import (
    DTYPES,
    MAKERS,
    assert_same,
    assert_smallest,
    check_kernels,
    make,
    select_by_kernels,
    some_lengths,
)
from tests.helpers.select_reference import select_k_reference
from tonari.cuda.launch import _bound, launch
from tonari.select import Counters, Selection, tuning
from tonari.select.auto import choose
from tonari.select.cuda import survivors, threshold
from tonari.select.registry import make_options, method_module
from tonari.select.request import Request

if HAS_TORCH:
    import torch
    import triton
    import triton.language as tl

    @triton.jit
    def copy_kernel(values_ptr, out_ptr, SIZE: tl.constexpr):
        at = tl.arange(0, SIZE)
        tl.store(out_ptr + at, tl.load(values_ptr + at))

    @triton.jit
    def clear_kernel(out_ptr):
        tl.store(out_ptr + tl.program_id(0), 0)


# Rows that streaming divides into several tiles, and of which the sample leaves well below half.
LONG = 2600
# For the interpreter, where many programs share a row and runs are merged.
TILE, RUN = 64, 32
STREAMED = ["random", "ascending", "descending", "equal", "two_valued", "leading_bits", "zeros", "infinities"]


@pytest.fixture
def always_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no row be short enough to be held in registers."""
    monkeypatch.setattr(tuning, "LARGEST_RESIDENT", 0)


@on_device
@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.parametrize("method", ["threshold", "radix"])
def test_values_made_to_hurt(device: str, method: str, maker: str) -> None:
    """Each with its own shape, dtype and flags; the method "threshold" holds such rows in registers."""
    at = list(MAKERS).index(maker) + len(method)
    n, k = [(301, 20), (150, 40), (517, 5)][at % 3]
    lengths = some_lengths(3, n, at) if at % 4 < 2 else None
    arguments: dict[str, Any] = {"largest": at % 2 == 1, "lengths": lengths, "sorted": at % 5 > 0}
    check_kernels(device, method, make(maker, 3, n, DTYPES[at % len(DTYPES)], at), k, options={}, **arguments)


@on_device
@pytest.mark.parametrize("method", ["threshold", "radix"])
@pytest.mark.parametrize(("n", "k"), [(1, 1), (33, 1), (100, 100), (130, 129)])
def test_least_and_greatest_k(device: str, n: int, k: int, method: str) -> None:
    check_kernels(device, method, make("two_valued", 2, n, "float64", n), k, options={})


@on_device
@pytest.mark.usefixtures("always_stream")
@pytest.mark.parametrize("maker", STREAMED)
def test_streamed_rows(device: str, maker: str) -> None:
    """Sampled, compacted and answered; a row shorter than the buffer is kept completely."""
    at = list(MAKERS).index(maker)
    assert threshold.shape_for_sample(LONG, 12, 512) is not None
    for dtype, largest in ((DTYPES[at % len(DTYPES)], False), ("float32", True)):
        values = make(maker, 2, LONG, dtype, at)
        check_kernels(device, "threshold", values, 12, options={"samples": 512}, largest=largest)
    lengths = np.array([LONG - 1, 40])
    check_kernels(device, "threshold", make(maker, 2, LONG, "float32"), 50, options={"samples": 512}, lengths=lengths)


@on_device
@pytest.mark.usefixtures("always_stream")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_rows_that_many_programs_sample(device: str, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "LARGEST_SAMPLE", 512)
    shape = threshold.shape_for_sample(2 * LONG, 5, 1024)
    assert shape is not None
    assert shape.parts == 2
    values = np.concatenate([make(maker, 1, 2 * LONG, dtype) for maker in ("random", "descending")])
    check_kernels(device, "threshold", values, 5, options={"samples": 1024})


@on_device
@pytest.mark.usefixtures("always_stream")
@pytest.mark.parametrize("dtype", ["float32", "float64", "uint8"])
@pytest.mark.parametrize(
    ("rank", "capacity"), [pytest.param(1, 256, id="too low"), pytest.param(200, 64, id="too high")]
)
def test_thresholds_that_miss(
    device: str, rank: int, capacity: int, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fewer survivors than k, or more than there is room for: radix selection answers such a row."""
    shape = threshold.Shape(samples=512, parts=1, rank=rank, most=rank, capacity=capacity)
    monkeypatch.setattr(threshold, "shape_for_sample", lambda *_: shape)
    values = torch.from_numpy(make("random", 2, LONG, dtype))
    for largest in (False, True):
        counters = Counters()
        found, nan_row = select_by_kernels(
            device, "threshold", values, 60, samples=512, largest=largest, counters=counters
        )
        assert counters.compression_ratio is not None
        left = LONG / counters.compression_ratio  # of the row with the most survivors
        assert left < 60 if rank == 1 else left > capacity
        assert_same(found, select_k_reference(values, 60, largest=largest))
        assert nan_row is None


@on_device
@pytest.mark.usefixtures("always_stream")
@pytest.mark.parametrize("order", ["random", "ascending", "descending"])
def test_what_a_sample_leaves(device: str, order: str) -> None:
    """Equations 3 and 4 from the values themselves: for 1..n the threshold is also the number of survivors."""
    values = np.tile(np.arange(1, LONG + 1, dtype=np.float32), (2, 1))
    if order == "random":
        values = np.random.default_rng(0).permuted(values, axis=1)
    elif order == "descending":
        values = values[:, ::-1].copy()
    shape = threshold.shape_for_sample(LONG, 30, 512)
    assert shape is not None
    counters = Counters()
    found, _ = select_by_kernels(device, "threshold", values, 30, samples=512, counters=counters)
    assert found.values[:, -1].tolist() == [30, 30]
    assert counters.examined == values.size
    assert counters.compression_ratio is not None
    assert counters.threshold_ratio is not None
    most_left = LONG / counters.compression_ratio
    assert most_left == pytest.approx(round(most_left))
    assert 30 <= round(most_left) <= shape.capacity  # the sample was good enough, for any order
    # Both rows' thresholds are at most that, and the larger of them is that.
    assert 30 / most_left <= counters.threshold_ratio <= (30 / most_left + 1) / 2


@on_device
@pytest.mark.usefixtures("always_stream")
@pytest.mark.parametrize(
    ("samples", "parts", "most"),
    [
        pytest.param(512, 1, 40, id="one program"),
        pytest.param(512, 1, 47, id="any of eight ranks"),
        pytest.param(1024, 2, 40, id="two programs"),
    ],
)
def test_a_sample_that_is_the_row(
    device: str, samples: int, parts: int, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its threshold has the requested rank, and exactly the values that do not exceed it remain."""
    n = samples * parts
    shape = threshold.Shape(samples=samples, parts=parts, rank=40, most=most, capacity=64)
    monkeypatch.setattr(threshold, "shape_for_sample", lambda *_: shape)
    for values in (np.random.default_rng(n).permutation(n), np.zeros(n, np.int64)):
        counters = Counters()
        tensor = torch.from_numpy(values[None].astype(np.int32))
        found, _ = select_by_kernels(device, "threshold", tensor, 30, samples=512, counters=counters)
        assert_same(found, select_k_reference(tensor, 30))
        assert counters.compression_ratio is not None
        assert 40 <= round(n / counters.compression_ratio, 6) <= most


@on_device
@pytest.mark.usefixtures("always_stream")
def test_nan_in_streamed_rows(device: str) -> None:
    for dtype in ("float32", "float16", "float64"):
        for largest, column in ((False, LONG - 1), (True, 5)):
            values = make("random", 3, LONG, dtype)
            values[1, column] = values[2, 7] = np.nan
            assert select_by_kernels(device, "threshold", values, 7, samples=512, largest=largest)[1] == 1
            arguments: dict[str, Any] = {"largest": largest, "nan": "last"}
            check_kernels(device, "threshold", values[1:], 7, options={"samples": 512}, **arguments)


def test_rows_of_any_length_are_sampled() -> None:
    """A sample of 2**17, once the largest, left too many of 2**26 values for any program to hold."""
    for n, k in ((2**26, 10), (2**26, 4096), (2**28, 1), (2**28, 1024)):
        shape = threshold.shape_for(1, n, k)
        assert shape is not None
        assert k <= shape.capacity <= survivors.LARGEST_TILE
        assert 8 * shape.samples * shape.parts <= n
    # What a smaller sample serves keeps it.
    assert all(threshold.shape_for(1, 2**24, k) == _smaller_sample(2**24, k) for k in (10, 256, 1024))


def _smaller_sample(n: int, k: int) -> threshold.Shape | None:
    """Return the cheapest of the samples up to 2**17."""
    shapes = (threshold.shape_for_sample(n, k, 1 << bits) for bits in range(9, 18))
    fitting = [shape for shape in shapes if shape is not None]

    def cost(shape: threshold.Shape) -> float:
        samples = shape.samples * shape.parts
        return 20 * samples / shape.parts + 16 * shape.most * n / samples + 12 * shape.capacity

    return min(fitting, key=cost)


@on_device
@pytest.mark.usefixtures("always_stream")
def test_samples_of_few_rows_are_single_values(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Values in runs of eight, as long as a run of a sample: as many survive as for other values."""
    monkeypatch.setattr(tuning, "LARGEST_SAMPLE", 512)
    shape = threshold.shape_for_sample(2 * LONG, 5, 1024)
    assert shape is not None
    assert shape.parts == 2
    values = np.repeat(make("random", 2, LONG // 4, "float32"), 8, axis=1)
    counters = Counters()
    found, _ = select_by_kernels(device, "threshold", values, 5, samples=1024, counters=counters)
    assert_same(found, select_k_reference(torch.from_numpy(values), 5))
    assert counters.compression_ratio is not None
    expected = shape.rank * 2 * LONG / 1024
    assert abs(2 * LONG / counters.compression_ratio / expected - 1) < 4 / np.sqrt(shape.rank)


@on_device
@pytest.mark.usefixtures("always_stream")
def test_few_rows_of_other_lengths_are_not_sampled(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sample is made for rows of n values; of shorter rows too few values would remain."""
    monkeypatch.setattr(tuning, "LONG_ROW", LONG)
    monkeypatch.setattr(threshold, "_select_streamed", lambda *_: pytest.fail("a row was sampled"))
    values = make("random", 2, LONG, "float32")
    check_kernels(device, "threshold", values, 12, options={"samples": 512}, lengths=np.array([LONG // 2, 0]))


def test_what_is_beyond_a_network_is_left_to_radix() -> None:
    assert choose("cuda", 2048, 2**17, 20_000, "float32")[0] == "radix"
    assert choose("cuda", 1, 2**17, survivors.LARGEST_NETWORK + 1, "float64")[0] == "radix"
    assert choose("cuda", 1, 2**26, 10, "float32")[0] == "threshold"


def test_large_k_of_few_values_are_left_to_radix() -> None:
    for rows, n in ((65, 2**13), (1, 2**21), (256, 2**13)):
        assert choose("cuda", rows, n, 4096, "float32")[0] == "radix"
        assert choose("cuda", rows, n, 2048, "float32")[0] != "radix"
    for rows, n in ((1, 2**26), (2048, 2**15), (17, 2**17), (1, 2**13)):
        assert choose("cuda", rows, n, 4096, "float32")[0] == "threshold"
    assert choose("cpu", 1, 2**13, 4096, "float32")[0] != "radix"


@pytest.fixture
def _memory_goes_back() -> Iterator[None]:
    """Return memory that torch keeps after a large test, since other processes may need it."""
    yield
    torch.cuda.empty_cache()


@on_gpu
@pytest.mark.usefixtures("_memory_goes_back")
@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize(
    ("rows", "n", "k"),
    [
        (1, 2**26, 10),
        (1, 2**26 + 3, 4096),
        (1, 2**26, 65_536),
        (2, 2**27, 64),
        (2, 2**27, 20_000),
        (1, 2**28, 1),
        (1, 2**28, 65_536),
        (1, 2**17, 4096),
        (2, 2**13, 2049),
        (2048, 2**13, 4096),
        (64, 2**20, 30_000),
        (2048, 2**17, 20_000),
        (2048, 2**17, 120_000),
        (300, 2**15, 2**15),
        (40_000, 2**13, 5000),
    ],
)
def test_shapes_that_were_slow(rows: int, n: int, k: int, ties: bool) -> None:
    """Answers of auto for few long rows and for large k, for distinct values and for few different ones."""
    generator = torch.Generator("cuda").manual_seed(n + k)
    values = torch.empty((rows, n), device="cuda")
    if ties:
        values.random_(0, 1000, generator=generator).sub_(500).mul_(-0.0 if k == 1 else 1.0)
    else:
        values.normal_(generator=generator)
    method, options = choose("cuda", rows, n, k, "float32")
    for largest in (False, True):
        request = Request(values, "float32", k, make_options(method, options, "cuda"), largest=largest)
        answer = method_module(method).select_on_gpu(request)
        assert_smallest(Selection(answer.values, answer.indices), values, k, largest=largest)
        assert answer.nan_row.item() == 2**31 - 1
        loose = method_module(method).select_on_gpu(replace(request, sorted=False))
        assert torch.equal(answer.indices.sort(dim=1).values, loose.indices.sort(dim=1).values)
        assert torch.equal(values.gather(1, loose.indices.long()), loose.values)


def test_samples_follow_their_rule() -> None:
    """k and the capacity are this many standard deviations from the expected number of survivors."""
    for n, k, samples in ((2**15, 64, 1024), (2**20, 10, 4096), (2**17, 1000, 4096)):
        shape = threshold.shape_for_sample(n, k, samples)
        assert shape is not None
        spread = tuning.DEVIATIONS * np.sqrt([shape.rank, shape.most])
        assert shape.rank - spread[0] >= k * samples / n
        assert shape.capacity >= max(k, (shape.most + spread[1]) * n / samples)
        assert shape.samples * shape.parts == samples
    assert threshold.shape_for_sample(1000, 400, 512) is None  # half of the row would be left


def special(argument: Any, *, plain: bool = False) -> Any:
    """Return how a compiled variant depends on one argument, which may be one that the kernel does not specialise."""
    return _bound((argument,), frozenset([0] * plain))[0][0]


def test_what_a_compiled_variant_depends_on() -> None:
    assert len({special(number) for number in (1, 16, 17, 2**40, 2**40 + 1)}) == 5
    assert special(3) == special(5)
    assert len({special(count, plain=True) for count in (1, 3, 16, 17)}) == 1
    assert special(2**40, plain=True) == special(2**40 + 1, plain=True) != special(1, plain=True)
    assert special(None) is None


@needs_torch
def test_what_a_compiled_variant_depends_on_in_a_tensor() -> None:
    row = torch.zeros(40, dtype=torch.int32)
    aligned = -row.data_ptr() % 16 // 4
    assert special(row[aligned:]) != special(row[aligned + 1 :])
    assert special(row[aligned:]) == special(row[aligned + 4 :])
    assert special(row[aligned:]) != special(row.view(torch.float32)[aligned:])


class Compiled:
    """Stands for a compiled variant, and records the arguments of its runs."""

    def __init__(self) -> None:
        self.runs: list[tuple[Any, ...]] = []

    def __getitem__(self, grid: tuple[int, ...]) -> Callable[..., None]:
        return lambda *given: self.runs.append((grid, *given))


class Kernel:
    """Stands for a Triton kernel, and records the compiled variants and their arguments."""

    device_caches: ClassVar[dict[int, Any]] = {}
    arg_names = ("values_ptr", "n", "missing_ptr", "SIZE", "WIDE")

    def __init__(self) -> None:
        def some_kernel(values_ptr, n, missing_ptr, SIZE: tl.constexpr, WIDE: tl.constexpr): ...

        self.fn = some_kernel
        self.variants: list[Compiled] = []
        self.asked: list[dict[str, Any]] = []

    def __getitem__(self, grid: tuple[int, ...]) -> Callable[..., Compiled]:
        def compiled(**asked: Any) -> Compiled:
            self.asked.append(asked)
            self.variants.append(Compiled())
            return self.variants[-1]

        return compiled


ARGUMENTS = {"missing_ptr": None, "values_ptr": None, "n": 5}
CONSTANTS = {"WIDE": False, "SIZE": 8}


@needs_torch
def test_a_known_variant_is_given_addresses() -> None:
    """In the kernel's order, in any order of the names; another variant is compiled."""
    first, second = Kernel(), Kernel()
    row = torch.zeros(40, dtype=torch.int32)
    for kernel, programs, n in ((first, 3, 5), (first, 4, 7), (second, 4, 7), (first, 4, 16)):
        arguments = {"n": n, "missing_ptr": None, "values_ptr": row}
        launch(kernel, programs, arguments, constants=CONSTANTS, warps=1)
    assert len(first.variants) == 2
    assert first.variants[0].runs == [((4, 1, 1), row.data_ptr(), 7, None, 8, False)]
    assert not first.variants[1].runs
    assert [variant.runs for variant in second.variants] == [[]]
    options = {"num_warps": 1, "enable_fp_fusion": True, "sanitize_overflow": False}
    assert first.asked[1] == {"values_ptr": row, "n": 16, "missing_ptr": None, **CONSTANTS, **options}


@needs_torch
def test_a_variant_belongs_to_its_constants_names() -> None:
    """The same values under exchanged names are another variant, in whatever order they are written."""
    kernel = Kernel()
    arguments = {"values_ptr": torch.zeros(40), "n": 5, "missing_ptr": None}
    for constants in ({"SIZE": 2, "WIDE": 4}, {"SIZE": 4, "WIDE": 2}, {"WIDE": 4, "SIZE": 2}, {"WIDE": 2, "SIZE": 4}):
        launch(kernel, 1, arguments, constants=constants, warps=1)
    assert [(asked["SIZE"], asked["WIDE"]) for asked in kernel.asked] == [(2, 4), (4, 2)]
    assert [[run[-2:] for run in variant.runs] for variant in kernel.variants] == [[(2, 4)], [(4, 2)]]


@needs_torch
@pytest.mark.parametrize("programs", [0, 1])
@pytest.mark.parametrize(
    ("arguments", "constants", "message"),
    [
        (ARGUMENTS | {"m": 3}, CONSTANTS, "no argument is called 'm'"),
        ({"values_ptr": None, "n": 5}, CONSTANTS, "argument 'missing_ptr' is missing"),
        (
            {"values_ptr": None, "n": 5, "mising_ptr": None},
            CONSTANTS,
            "no argument is called 'mising_ptr', argument 'missing_ptr' is missing",
        ),
        (ARGUMENTS, CONSTANTS | {"TILE": 3}, "no constant is called 'TILE'"),
        (ARGUMENTS, {"WIDE": True}, "constant 'SIZE' is missing"),
        (ARGUMENTS, {"WIDE": True, "SIZES": 3}, "no constant is called 'SIZES', constant 'SIZE' is missing"),
        (
            ARGUMENTS | {"SIZE": 3},
            {"WIDE": True},
            "no argument is called 'SIZE', constant 'SIZE' is missing",
        ),
    ],
)
def test_names_that_are_not_the_kernels(
    arguments: dict[str, Any], constants: dict[str, Any], message: str, programs: int
) -> None:
    kernel = Kernel()
    with pytest.raises(TypeError) as error:
        launch(kernel, programs, arguments, constants=constants, warps=1)
    taken = "arguments values_ptr, n, missing_ptr; constants SIZE, WIDE"
    assert str(error.value) == f"some_kernel: {message}; expected {taken}"
    assert not kernel.variants


@needs_torch
def test_arguments_come_by_name_only() -> None:
    with pytest.raises(TypeError, match="positional"):
        launch(Kernel(), 1, torch.zeros(40), 5, None, constants=CONSTANTS, warps=1)  # type: ignore[call-arg, arg-type]


def test_constants_follow_the_other_arguments() -> None:
    def mixed(SIZE: tl.constexpr, values_ptr): ...

    kernel = Kernel()
    kernel.fn, kernel.arg_names = mixed, ("SIZE", "values_ptr")  # type: ignore[misc]
    with pytest.raises(TypeError, match=r"mixed: its constants \('SIZE',\) have to follow its other arguments"):
        launch(kernel, 1, {"values_ptr": None}, constants={"SIZE": 8}, warps=1)


@on_device
def test_names_of_a_real_kernel(device: str) -> None:
    """Kernels with one constant, or none, are launched like any others."""
    row = torch.arange(8, dtype=torch.int32, device=device)
    out = torch.zeros_like(row)
    for _ in range(2):  # the second time on a GPU without Triton's own binding
        launch(copy_kernel, 1, {"out_ptr": out, "values_ptr": row}, constants={"SIZE": 8}, warps=1)
        assert out.tolist() == row.tolist()
        launch(clear_kernel, 8, {"out_ptr": out}, constants={}, warps=1)
        assert not out.any()
    with pytest.raises(TypeError, match="copy_kernel: argument 'out_ptr' is missing; expected arguments values_ptr, "):
        launch(copy_kernel, 1, {"values_ptr": row}, constants={"SIZE": 8}, warps=1)
