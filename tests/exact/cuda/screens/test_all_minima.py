"""The screen on a GPU: minima of groups, written or appended, compared with float64 products.

Without a GPU, the kernels run in Triton's interpreter.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tonari
from tests.helpers import checks
from tests.helpers.checks import assert_same_neighbors
from tests.helpers.compiling import compiled
from tests.helpers.devices import HAS_TORCH, needs_torch, on_device, on_gpu
from tests.helpers.gpu_checks import on_host
from tonari.exact.cuda import tuning
from tonari.exact.cuda.rows import tiles
from tonari.exact.cuda.rows.groups import POINT_TILE, group_count, members
from tonari.exact.cuda.rows.pack import PackedPoints, PackedQueries
from tonari.exact.cuda.rows.tiles import Lists, row_bytes, width_of
from tonari.exact.cuda.screens import all_minima as screening
from tonari.exact.cuda.screens import wide_rows
from tonari.exact.cuda.screens.all_minima import screen, screen_below
from tonari.exact.cuda.screens.wide_rows import held_tiling, tiling_of

if HAS_TORCH:
    import torch

pytestmark = needs_torch

GROUPS = (8, 16, 32)
# Values on this grid and their sums are exact in float16 and float32, so any order of additions gives the same bits.
GRID = 1 / 8
ELEMENTS = pytest.mark.parametrize("size", [2, 1], ids=["float16", "int8"])  # bytes of packed elements


def problem(m: int, n: int, d: int, device: str, seed: int = 0, size: int = 2) -> tuple[Any, Any]:
    """Make packed queries and points as the screen reads them, of numbers with exact scores."""
    rng = np.random.default_rng(seed)
    tiles = -(-n // POINT_TILE)
    width = width_of(d, size)
    element = torch.float16 if size == 2 else torch.int8
    unit = 1 if size == 2 else 1 / GRID  # elements of int8 are whole

    def grid(*shape: int, least: int = -8) -> np.ndarray:
        return rng.integers(least, 9, shape) * GRID

    values = np.zeros((tiles * POINT_TILE, width))
    values[:n, :d] = unit * grid(n, d)
    low = np.full(tiles * POINT_TILE, np.inf)
    low[:n] = grid(n)
    rows = np.zeros((m, width))
    rows[:, :d] = unit * grid(m, d)

    def put(array: np.ndarray, dtype: Any) -> Any:
        return torch.from_numpy(array).to(dtype).to(device)

    float32 = torch.float32
    points = PackedPoints(
        values=put(values, element),
        low=put(low, float32),
        e1=put(grid(tiles, least=0), float32),
        e2=put(grid(tiles, least=0), float32),
        n=n,
    )
    queries = PackedQueries(
        put(rows, element), put(grid(m, least=0), float32), put(grid(m, least=0), float32), shift=None
    )
    return queries, points


def expected(queries: Any, points: Any, group: int) -> np.ndarray:
    """Compute every group's certified minimum; a block of tiles may use the bound of its largest tile, see `slack`."""

    def array(x: Any) -> np.ndarray:
        return x.double().cpu().numpy()

    times = -2 if queries.values.dtype == torch.int8 else 1  # queries of float16 are packed times -2
    scores = times * array(queries.values) @ array(points.values).T + array(points.low)
    count = group_count(points.n, group)
    lowest = scores[:, members(np.arange(count), group)].min(axis=2)
    bound = array(queries.norm)[:, None] * array(points.e1) + array(queries.rest)[:, None] * array(points.e2)
    return lowest - np.repeat(bound, POINT_TILE // group, axis=1)


def run_dense(queries: Any, points: Any, group: int, rows: slice) -> np.ndarray:
    m = len(range(*rows.indices(len(queries.values))))
    minima = torch.full((m, group_count(points.n, group)), float("nan"), device=queries.values.device)
    screen(queries, points, rows, group, minima)
    return minima.cpu().numpy()


@on_device
@ELEMENTS
@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize(("m", "n", "d"), [(1, 1, 1), (7, 127, 16), (17, 128, 33), (65, 129, 96), (130, 300, 128)])
def test_minima_are_those_of_plain_products(device: str, m: int, n: int, d: int, group: int, size: int) -> None:
    queries, points = problem(m, n, d, device, size=size)
    np.testing.assert_array_equal(run_dense(queries, points, group, slice(0, m)), expected(queries, points, group))


@on_device
@ELEMENTS
@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize(("m", "n", "d"), [(1, 100, 129), (7, 260, 300), (70, 513, 200)])
def test_wide_rows_are_streamed(device: str, m: int, n: int, d: int, group: int, size: int) -> None:
    queries, points = problem(m, n, d, device, size=size)
    points.e1[:] = points.e1.max()  # a block of two tiles uses the larger bound of both
    points.e2[:] = points.e2.max()
    np.testing.assert_array_equal(run_dense(queries, points, group, slice(0, m)), expected(queries, points, group))


@on_device
def test_wide_blocks_take_the_larger_bound_of_their_tiles(device: str) -> None:
    queries, points = problem(70, 512, 200, device)
    plain = expected(queries, points, 32)
    for at in range(0, 4, 2):
        points.e1[at : at + 2] = points.e1[at : at + 2].max()
        points.e2[at : at + 2] = points.e2[at : at + 2].max()
    bounded = expected(queries, points, 32)
    assert (bounded < plain).any()
    np.testing.assert_array_equal(run_dense(*problem(70, 512, 200, device), 32, slice(0, 70)), bounded)


@on_device
def test_a_slice_of_the_queries(device: str) -> None:
    queries, points = problem(150, 200, 40, device)
    np.testing.assert_array_equal(run_dense(queries, points, 8, slice(16, 147)), expected(queries, points, 8)[16:147])


def check_lists(lists: Lists, everything: np.ndarray, thresholds: np.ndarray) -> int:
    """Check the contents of lists, and return the number of entries for which there was no room."""
    counts, values, entries = (part.cpu().numpy() for part in (lists.counts, lists.values, lists.entries))
    groups, masks = np.divmod(entries, 16)
    parts = everything.reshape(len(counts), -1, 4, 4).swapaxes(2, 3)  # in the order of listed groups
    lowest = parts.reshape(len(counts), -1, 4).min(axis=2)
    passed = (parts.reshape(len(counts), -1, 4) <= thresholds[:, None, None]) @ (1 << np.arange(4))
    segments, missing = counts.shape[1], 0
    listed = np.arange(lists.room) < np.minimum(counts, lists.room)[:, :, None]
    listed = listed.reshape(len(counts), segments * lists.room)
    assert np.isinf(values[~listed]).all()
    for row in range(len(counts)):
        wanted = set(np.flatnonzero(lowest[row] <= thresholds[row]))
        found = groups[row, listed[row]]
        assert counts[row].sum() == len(wanted)
        assert len(set(found)) == len(found)
        assert set(found) <= wanted
        np.testing.assert_array_equal(values[row, listed[row]], lowest[row, found])
        np.testing.assert_array_equal(masks[row, listed[row]], passed[row, found])
        missing += len(wanted) - len(found)
    assert missing == np.maximum(counts - lists.room, 0).sum()
    return int(missing)


@on_device
@ELEMENTS
@pytest.mark.parametrize(("m", "n", "d"), [(3, 129, 16), (130, 2000, 96), (70, 2049, 200)])
def test_lists_hold_what_the_threshold_lets_through(device: str, m: int, n: int, d: int, size: int) -> None:
    queries, points = problem(m, n, d, device, size=size)
    points.e1[:], points.e2[:] = points.e1.max(), points.e2.max()
    everything = expected(queries, points, 8)
    thresholds = np.sort(everything, axis=1)[:, min(9, everything.shape[1] - 1)]
    thresholds[0] = -np.inf
    given = torch.from_numpy(thresholds).float().to(queries.values.device)
    lists = screen_below(queries, points, slice(0, m), given, 40)
    assert lists.counts[0].sum() == 0
    assert check_lists(lists, everything, thresholds) == 0


@on_device
def test_a_list_that_is_too_short_counts_on(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "UNEVEN", 0.0)
    queries, points = problem(5, 1500, 16, device)
    everything = expected(queries, points, 8)
    thresholds = np.full(5, 1e30)
    lists = screen_below(queries, points, slice(0, 5), torch.full((5,), 1e30, device=queries.values.device), 9)
    assert check_lists(lists, everything, thresholds) > 0


@on_device
def test_programs_share_out_the_points(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiles, "multiprocessors", lambda _: 3)
    queries, points = problem(150, 3000, 16, device)
    everything = expected(queries, points, 8)
    thresholds = np.sort(everything, axis=1)[:, 30]
    given = torch.from_numpy(thresholds).float().to(queries.values.device)
    lists = screen_below(queries, points, slice(0, 150), given, 60)
    assert lists.counts.shape[1] >= 12
    assert (lists.counts.sum(axis=0) > 0).all()
    assert check_lists(lists, everything, thresholds) == 0
    np.testing.assert_array_equal(run_dense(queries, points, 8, slice(0, 150)), everything)


@pytest.mark.parametrize("group", GROUPS)
def test_groups_share_out_the_columns(group: int) -> None:
    columns = members(np.arange(group_count(300, group)), group)
    assert sorted(columns.ravel()) == list(range(3 * POINT_TILE))


@pytest.mark.parametrize(
    ("batch", "count", "expected"),
    [(8576, 132, 8448), (4224, 132, 4224), (4223, 132, 4223), (9000, 108, 6912), (6000, 46, 5888), (300, 1, 256)],
)
def test_batches_whose_tiles_are_shared_evenly(
    batch: int, count: int, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tiles, "multiprocessors", lambda device: count)
    made = tiles.even_batch(batch, torch.device("cpu"))
    assert made == expected
    assert made == batch or (made % POINT_TILE == 0 and 4 * made % (POINT_TILE * count) == 0)


def skip_unless_hopper() -> None:
    """Gluon's kernels use Hopper's matrix units, and are never launched on other GPUs."""
    if not tiles.is_hopper(torch.device("cuda:0")):
        pytest.skip(f"{torch.cuda.get_device_name()} is not of the Hopper generation, which this kernel is for")


@on_gpu
@pytest.mark.parametrize(("d", "size"), [(100, 2), (128, 2), (200, 1), (256, 1)])
@pytest.mark.parametrize(("m", "n"), [(257, 700), (300, 5000), (512, 1024), (513, 129), (600, 40_001)])
def test_the_kernel_for_hopper_lists_what_the_threshold_lets_through(m: int, n: int, d: int, size: int) -> None:
    device = torch.device("cuda:0")
    skip_unless_hopper()
    queries, points = problem(m, n, d, "cuda:0", size=size)
    assert screening._is_for_hopper(m, row_bytes(queries.values), queries.values.device)
    everything = expected(queries, points, 8)
    thresholds = np.sort(everything, axis=1)[:, min(9, everything.shape[1] - 1)]
    thresholds[0], thresholds[-1] = -np.inf, 1e30
    given = torch.from_numpy(thresholds).float().to(device)
    lists = screen_below(queries, points, slice(0, m), given, 40)
    assert lists.counts[0].sum() == 0
    missing = check_lists(lists, everything, thresholds)
    assert missing == max(0, int((lists.counts[-1] - lists.room).clamp(min=0).sum()))


@on_gpu
@pytest.mark.parametrize(
    ("d", "size"), [*((d, 2) for d in (129, 200, 256, 400, 768, 1408)), *((d, 1) for d in (257, 400, 768, 2816))]
)
@pytest.mark.parametrize(("m", "n"), [(1, 300), (65, 700), (300, 5000), (600, 20_001)])
def test_wide_rows_that_are_held_are_listed(m: int, n: int, d: int, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """This includes rows that are held only in graphs."""
    monkeypatch.setattr(wide_rows, "LARGEST", wide_rows.LARGEST_MIRRORED)
    device = torch.device("cuda:0")
    skip_unless_hopper()
    queries, points = problem(m, n, d, "cuda:0", size=size)
    assert held_tiling(row_bytes(queries.values), device) is not None
    everything = expected(queries, points, 8)
    thresholds = np.sort(everything, axis=1)[:, min(9, everything.shape[1] - 1)]
    thresholds[0] = -np.inf
    given = torch.from_numpy(thresholds).float().to(device)
    lists = screen_below(queries, points, slice(0, m), given, 40)
    assert lists.counts[0].sum() == 0
    assert check_lists(lists, everything, thresholds) == 0


@pytest.mark.parametrize(
    ("length", "tall"),
    [*((length, False) for length in (384, 512, 768, 1024, 1152, 2816)), (640, True), (768, True), (1152, True)],
)
def test_what_is_held_fits_in_shared_memory(length: int, tall: bool) -> None:
    made = tiling_of(length, tall=tall)
    assert made.stages >= tuning.LEAST_STAGES
    each = made.rows * length + made.stages * POINT_TILE * tiles.STEP_BYTES + wide_rows.BESIDE
    assert each <= wide_rows.OF_PROGRAM
    assert made.programs * (each + wide_rows.RESERVED) <= wide_rows.SHARED
    assert made.programs * 32 * made.warps * made.registers <= 1 << 16
    assert tiling_of(wide_rows.LARGEST_MIRRORED + tiles.STEP_BYTES).stages < tuning.LEAST_STAGES


_COMPILE_HELD = """
import triton
from triton.backends.compiler import GPUTarget
from triton.experimental.gluon import language as gl
from triton.experimental.gluon._runtime import GluonASTSource
from tonari.exact.cuda.screens import wide_rows
from tonari.exact.cuda.rows import tiles
from tonari.exact.cuda.rows.groups import POINT_TILE
from tonari.exact.cuda.kernels.screens.wide_rows import screen_held_kernel as kernel

def tile(rows, size):
    shape, name, element = [rows, tiles.STEP_BYTES // size], *{1: ("i8", gl.int8), 2: ("fp16", gl.float16)}[size]
    return f"tensordesc<{name}{shape},{gl.NVMMASharedLayout.get_default_for(shape, element)!r}>"

types = {"shift_ptr": "*fp64"}
types |= dict.fromkeys(("entries_ptr", "counts_ptr", "groups_ptr", "masks_ptr", "noted_ptr"), "*i32")
names = kernel.arg_names
for size, length in ((2, 512), (2, 1536), (1, 768)):
    for mirrored in (False, True):
        made = wide_rows.tiling_of(length, tall=mirrored and size == 1)
        types |= {"queries": tile(made.rows, size), "points": tile(POINT_TILE, size)}
        constants = {"ROWS": made.rows, "COLUMNS": POINT_TILE, "STEP": tiles.STEP_BYTES // size, "STAGES": made.stages,
                     "HELD": length // tiles.STEP_BYTES, "WARPS": made.warps, "MIRRORED": mirrored}
        if not mirrored:
            constants |= dict.fromkeys(("shift_ptr", "limits_ptr", *wide_rows.NOTED))
        signature = {
            name: "constexpr" if name in constants else types.get(name, "*fp32" if name.endswith("_ptr") else "i32")
            for name in names
        }
        source = GluonASTSource(kernel, signature, {(names.index(name),): value for name, value in constants.items()})
        options = {"num_warps": made.warps, "maxnreg": made.registers}
        built = triton.compile(source, target=GPUTarget("cuda", 90, 32), options=options)
        each = built.metadata.shared
        beside = each - made.rows * length - made.stages * POINT_TILE * tiles.STEP_BYTES
        print(beside <= wide_rows.BESIDE, {1: ".s32.s8.s8", 2: ".f32.f16.f16"}[size] in built.asm["ptx"])
"""


@pytest.mark.full
@pytest.mark.process
def test_the_kernel_that_holds_rows_compiles(tmp_path: Path) -> None:
    """Also without a GPU, and in the shared memory that it is planned to take."""
    assert compiled(_COMPILE_HELD, tmp_path) == ["True True"] * 6


_COMPILE = """
import triton
from triton.backends.compiler import GPUTarget
from triton.experimental.gluon import language as gl
from triton.experimental.gluon._runtime import GluonASTSource
from tonari.exact.cuda import tuning
from tonari.exact.cuda.screens import all_minima
from tonari.exact.cuda.kernels.screens.all_minima_hopper import screen_hopper_kernel as kernel

half = tuning.HOPPER_ROWS // 2
names = kernel.arg_names
for size, folded in ((2, False), (1, False), (1, True)):
    name, element = {1: ("i8", gl.int8), 2: ("fp16", gl.float16)}[size]
    width = tuning.HOPPER_BYTES // size
    constants = {"HALF": half, "COLUMNS": all_minima.POINT_TILE, "WIDTH": width, "STAGES": tuning.HOPPER_STAGES,
                 "TILES": tuning.HOPPER_TILES, "FOLDED": folded}
    constants |= dict.fromkeys(("low_ptr", "e1_ptr", "e2_ptr", "norm_ptr", "rest_ptr")) if folded else {}

    def tiles(*shape):
        return f"tensordesc<{name}{list(shape)},{gl.NVMMASharedLayout.get_default_for(list(shape), element)!r}>"

    types = {"queries": tiles(half, width), "points": tiles(all_minima.POINT_TILE, width), "entries_ptr": "*i32",
             "counts_ptr": "*i32"}
    signature = {
        name: "constexpr" if name in constants else types.get(name, "*fp32" if name.endswith("_ptr") else "i32")
        for name in names
    }
    source = GluonASTSource(kernel, signature, {(names.index(name),): value for name, value in constants.items()})
    built = triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": 8})
    print(len(built.asm["cubin"]) > 0, {1: ".s32.s8.s8", 2: ".f32.f16.f16"}[size] in built.asm["ptx"])
"""


@pytest.mark.full
@pytest.mark.process
def test_the_kernel_for_hopper_compiles(tmp_path: Path) -> None:
    """Without a GPU nothing else uses this kernel, and names of Gluon change between versions of Triton."""
    assert compiled(_COMPILE, tmp_path) == ["True True"] * 3


@on_gpu
def test_a_search_takes_the_kernel_for_hopper(monkeypatch: pytest.MonkeyPatch) -> None:
    skip_unless_hopper()
    launched = []
    launch_on_hopper = screening._launch_on_hopper

    def spy(*arguments: Any) -> None:
        launched.append(len(arguments[3]))
        launch_on_hopper(*arguments)

    monkeypatch.setattr(screening, "_launch_on_hopper", spy)
    for maker in (checks.gaussian, checks.tight_far_clusters):
        rows = maker(100_000, 128)
        found = tonari.search(*(torch.from_numpy(part).to("cuda") for part in (rows[:600], rows)), 10)
        assert_same_neighbors(on_host(found), tonari.search(rows[:600], rows, 10))
    assert len(launched) >= 2
    assert set(launched) == {600}


@pytest.mark.parametrize(("capability", "hip", "expected"), [(9, None, True), (8, None, False), (9, "6.0", False)])
def test_hopper_is_of_one_vendor(
    monkeypatch: pytest.MonkeyPatch, capability: int, hip: str | None, expected: bool
) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (capability, 0))
    monkeypatch.setattr(torch.version, "hip", hip)
    assert tiles.is_hopper(torch.device("cuda:5")) is expected
