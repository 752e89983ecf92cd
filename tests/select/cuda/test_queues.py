"""The queues of tang2015 on a GPU, one row per lane: answers and counters equal those of the slow models.

Without a GPU, the same tests run in Triton's interpreter, and a separate process compiles kernels for Hopper.
"""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.helpers.compiling import compiled
from tests.helpers.devices import HAS_TORCH, needs_torch, on_device
from tests.helpers.select_checks import DTYPES, assert_same, make, select_by_kernels, some_lengths
from tests.helpers.select_reference import select_k_reference
from tonari.select import Counters
from tonari.select.papers import queues
from tonari.select.registry import make_options

if HAS_TORCH:
    import torch

LANES = 32

QUEUES: list[tuple[str, dict[str, Any]]] = [
    ("insertion", {}),
    ("heap", {}),
    ("merge_queue", {"m": 2, "aligned": True}),
    ("merge_queue", {"m": 2, "aligned": False}),
]
BUFFERS: list[dict[str, Any]] = [
    {},
    {"buffer": "own", "buffer_size": 3},
    {"buffer": "full", "buffer_size": 2},
    {"buffer": "sorted", "buffer_size": 3},
]
PARTITIONS: list[dict[str, Any]] = [{}, {"group": 3}]


def check(device: str, method: str, values: Any, k: int, *, sorted: bool = True, **arguments: Any) -> Counters:
    """Compare answer and counters with the model's, and return the counters."""
    tensor = torch.from_numpy(values) if isinstance(values, np.ndarray) else values
    counters, expected = Counters(), Counters()
    found, nan_row = select_by_kernels(device, method, values, k, sorted=sorted, counters=counters, **arguments)
    truth = select_k_reference(tensor, k, method=method, lanes=LANES, counters=expected, **arguments)
    assert_same(found, truth, sorted=sorted)
    assert nan_row is None
    for name, value in vars(expected).items():
        np.testing.assert_array_equal(getattr(counters, name), value, err_msg=name, strict=True)
    return counters


def identify(method: str, options: dict[str, Any]) -> str:
    return "-".join([method, *(f"{name}={value}" for name, value in options.items())])


@on_device
@pytest.mark.parametrize(
    ("method", "options"),
    [
        pytest.param(method, options, id=identify(method, options))
        for (method, queue), buffer, partition in itertools.product(QUEUES, BUFFERS, PARTITIONS)
        for options in [queue | buffer | partition]
    ],
)
def test_every_queue_with_every_buffer_and_partition(device: str, method: str, options: dict[str, Any]) -> None:
    """Each has its own values, dtype and flags; most lanes have no row, and half of the time some end early."""
    offset = sum(map(ord, identify(method, options)))
    maker = ["random", "two_valued", "descending"][offset % 3]
    dtype = DTYPES[offset % len(DTYPES)]
    rows, n, k = 5, 15, [3, 4, 5][offset // 3 % 3]
    lengths = some_lengths(rows, n, offset) if offset // 2 % 2 else None
    check(device, method, make(maker, rows, n, dtype, offset), k, largest=offset % 5 < 2, lengths=lengths, **options)


@on_device
@pytest.mark.parametrize("rows", [1, 31, 32, 33])
def test_lanes_that_go_together(device: str, rows: int) -> None:
    """Rows of one warp merge and empty their buffers together; rows of other warps do not."""
    values = make("random", rows, 5, "float32")
    counters = check(device, "merge_queue", values, 2, m=1, buffer="full", buffer_size=2)
    assert counters.lanes == LANES
    assert counters.examined == rows * 5


@on_device
@pytest.mark.parametrize("maker", ["ascending", "equal", "infinities", "zeros", "organ_pipe"])
def test_values_made_to_hurt(device: str, maker: str) -> None:
    method, options = QUEUES[len(maker) % len(QUEUES)]
    check(device, method, make(maker, 5, 17, "float32"), 4, largest=maker == "equal", **options)


@on_device
@pytest.mark.parametrize(("n", "k"), [(1, 1), (9, 1), (9, 9), (5, 4)])
def test_least_and_greatest_k(device: str, n: int, k: int) -> None:
    """A queue of one place, and one that never rejects; a partition of at most k values has no list."""
    values = make("random", 3, n, "int32")
    for method, options in QUEUES[1:3]:
        check(device, method, values, k, group=2 if k == n else None, **options)


@on_device
@pytest.mark.parametrize("levels", [1, 2, 9])
def test_lists_above_the_values(device: str, levels: int) -> None:
    """Fewer values than would leave k groups, so the selection is from the top list itself, and exactly as many."""
    counters = check(device, "heap", make("random", 3, 23, "float64"), 2, group=2, levels=levels, nan="last")
    tops = {1: 12, 2: 6, 9: 2}  # 23 -> 12 -> 6 -> 3 -> 2, then the members of two groups in every list below
    assert counters.examined is not None
    assert 3 * tops[levels] < counters.examined <= 3 * (tops[levels] + 4 * min(levels, 4))


@on_device
@pytest.mark.parametrize("group", [None, 3])
def test_nan_is_last_and_its_first_row_told(device: str, group: int | None) -> None:
    values = make("random", 6, 10, "float16")
    values[4, 2] = values[2, 9] = values[5, :] = np.nan
    for largest in (False, True):
        check(device, "insertion", values, 4, largest=largest, nan="last", group=group)
    assert select_by_kernels(device, "insertion", values, 1, group=group)[1] == 2
    lengths = np.array([10, 10, 9, 10, 2, 0])  # no NaN is within them
    assert select_by_kernels(device, "insertion", values, 1, lengths=lengths, largest=True, group=group)[1] is None


@on_device
@pytest.mark.parametrize("sorted", [True, False])
def test_more_places_than_k(device: str, sorted: bool) -> None:
    """A merge queue of 8 places for k = 5: entries beyond k are left out."""
    check(device, "merge_queue", make("random", 2, 12, "uint8"), 5, sorted=sorted, m=2 if sorted else 8)


@on_device
def test_insertion_counts_of_ordered_rows(device: str) -> None:
    """In a descending row every value goes to the tail, past all places; in an ascending row only the first k enter."""
    n, k = 12, 5
    rows = np.arange(n, dtype=np.float32)
    down = check(device, "insertion", rows[None, ::-1].copy(), k)
    assert down.updates is not None
    assert down.updates.tolist() == [n] * k
    up = check(device, "insertion", rows[None], k)
    assert up.updates is not None
    assert up.updates.tolist() == [5, 4, 3, 2, 1]
    assert (up.merges, up.flushes, up.examined) == (None, 0, n)


@on_device
def test_insertion_counts_of_random_rows(device: str) -> None:
    """Figure 5: the place of the j-th smallest is written with probability min(1, j / i) at the i-th value."""
    rows, n, k = 16, 16, 4
    counters = Counters()
    select_by_kernels(device, "insertion", np.random.default_rng(0).random((rows, n)), k, counters=counters)
    j, i = np.arange(k, 0, -1)[:, None], np.arange(1, n + 1)
    chance = np.minimum(1, j / i)
    deviation = np.sqrt(rows * (chance * (1 - chance)).sum(axis=1))
    assert counters.updates is not None
    assert (np.abs(counters.updates - rows * chance.sum(axis=1)) < 4 * deviation).all()


@on_device
def test_alone_and_together_merge_differently(device: str) -> None:
    """In "own", rows with full buffers at one column do not wait for each other; in "full" all merge at once."""
    values = np.random.default_rng(1).random((8, 10))
    own = check(device, "merge_queue", values, 2, m=1, buffer="own", buffer_size=2)
    full = check(device, "merge_queue", values, 2, m=1, buffer="full", buffer_size=2)
    assert own.flushes is not None
    assert full.flushes is not None
    assert own.flushes > full.flushes
    assert full.merges is not None
    assert full.merges % 8 == 0


@on_device
def test_a_buffer_that_is_never_full(device: str) -> None:
    counters = check(device, "heap", make("random", 3, 8, "float32"), 2, buffer="sorted", buffer_size=10**12)
    assert counters.flushes == 1


@on_device
def test_rows_at_any_distance(device: str) -> None:
    wide = torch.zeros((9, 20))
    values = wide[1:8:2, 3:15]
    values[:] = torch.from_numpy(make("random", 4, 12, "float32"))
    assert_same(
        select_by_kernels(device, "heap", values, 3, group=3)[0],
        select_k_reference(values.contiguous(), 3, method="heap", group=3),
    )
    same = values[:1].expand(4, 12)
    assert_same(select_by_kernels(device, "heap", same, 3)[0], select_k_reference(same.contiguous(), 3))


@on_device
def test_rows_in_several_launches(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Scratch for 32 rows at a time: launches share answer and counters, and report the first NaN of all rows."""
    monkeypatch.setattr(queues, "SCRATCH_BYTES", 1)
    rows, n = LANES + 3, 4
    values = make("random", rows, n, "float32")
    check(device, "heap", values, 2, group=2, lengths=some_lengths(rows, n))
    values[[LANES + 1, LANES + 2], 0] = np.nan
    assert select_by_kernels(device, "insertion", values, 1)[1] == LANES + 1


@pytest.mark.parametrize(
    ("method", "options", "message"),
    [
        ("heap", {"buffer": "half"}, "buffer='half': expected one of none, own, full, sorted"),
        ("heap", {"buffer": "own", "buffer_size": 0}, "buffer_size=0: expected at least 1"),
        ("insertion", {"group": 1}, "group=1: expected at least 2 values per group"),
        ("insertion", {"group": 4, "levels": 0}, "levels=0: expected at least 1 list above the values"),
        ("insertion", {"levels": 2}, "levels=2: applies only together with group"),
        ("merge_queue", {"m": 0}, "m=0: expected a power of two"),
        ("merge_queue", {"m": 12}, "m=12: expected a power of two"),
        ("merge_queue", {"buffer": "Full"}, "buffer='Full'"),
    ],
)
def test_options_that_cannot_work(method: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make_options(method, options, "cuda")


_COMPILE = """
import itertools
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from tonari.select.papers.kernels.partition import queue_kernel

shared = {"M": 8, "ALIGNED": True, "HAS_LENGTHS": True, "CHECK_NAN": True, "COUNT": True, "LARGEST": False}
for queue, buffer, lists, wide in [(0, 3, 2, True), (1, 1, 0, False), (2, 2, 1, False), (2, 0, 0, True)]:
    infinite = 0x7FF0000000000000 if wide else 0x7C00
    constants = shared | {"QUEUE": queue, "BUFFER": buffer, "LISTS": lists, "WIDE": wide, "INFINITE": infinite}
    keys, bits = ("*i64", "*i64") if wide else ("*i32", "*i16")
    types = {"values_ptr": bits, "out_bits_ptr": bits, "lists_ptr": keys, "keys_ptr": keys, "buffer_keys_ptr": keys,
             "lengths_ptr": "*i64", "counts_ptr": "*i64"}
    names = queue_kernel.arg_names
    signature = {
        name: "constexpr" if name in constants else types.get(name, "*i32" if name.endswith("_ptr") else "i32")
        for name in names
    }
    source = ASTSource(queue_kernel, signature, {(names.index(name),): value for name, value in constants.items()})
    built = triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": 1})
    # Lanes keep to themselves: only votes cross them.
    print(len(built.asm["cubin"]) > 0, built.metadata.shared, "shfl" in built.asm["ptx"])
"""


@pytest.mark.full
@pytest.mark.process
@needs_torch
def test_kernels_compile_for_hopper(tmp_path: Path) -> None:
    """This also runs without a GPU: not everything that the interpreter accepts compiles."""
    assert compiled(_COMPILE, tmp_path) == ["True 0 False"] * 4
