"""The two launches that answer a few queries: bits of the reference on hard shapes and data, bounds, refusals.

Without a GPU, the kernels run in Triton's interpreter.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.helpers import checks
from tests.helpers.checks import Array
from tests.helpers.compiling import compiled
from tests.helpers.devices import HAS_TORCH, needs_torch, on_gpu
from tests.helpers.gpu_checks import DEVICE, check, numpy_of, on_host, plan_of, rows_of, tensors
from tonari.exact.cuda import tuning
from tonari.metrics import METRICS
from tonari.metrics.reference import brute

# NumPy, which replaces the device, warns where a device computes silently.
pytestmark = [needs_torch, pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")]
if HAS_TORCH:
    import torch

    from tests.helpers.launches import launched
    from tonari.cuda.compiling import ahead
    from tonari.cuda.compiling.rehearsal import Card, rehearsing
    from tonari.exact.cuda import dispatch
    from tonari.exact.cuda.attempts.ladder import DevicePoints
    from tonari.exact.cuda.attempts.rehearse import rehearse_search
    from tonari.exact.cuda.memory import SMALL_CHANGE
    from tonari.exact.cuda.refine.groups import widen
    from tonari.exact.cuda.rows.form import DeviceForm
    from tonari.exact.cuda.rows.groups import POINT_TILE
    from tonari.exact.cuda.rows.pack import new_flags, pack_queries
    from tonari.exact.cuda.screens import few as module
    from tonari.exact.cuda.screens.few import FLAGS, GROUP, PER_TILE, Few, few_row_bytes
    from tonari.inputs.arrays.values import NO_ROW

HERE = {"devices": (DEVICE,)}
GEMM = [name for name, metric in METRICS.items() if metric.form == "gemm"]


def attempt(queries: Array, points: Array, k: int, metric: str = "euclidean") -> tuple[Few, Array]:
    """Launch for some queries, and return the state afterwards."""
    q, x = tensors(DEVICE, queries, points)
    plan = plan_of(q, x, k, metric, **HERE)
    assert plan.few
    prepared = DevicePoints(x, metric, plan.precisions[0])
    state = torch.empty(2 * FLAGS + len(q), dtype=torch.int64, device=DEVICE)
    few = Few(q, prepared, plan, new_flags(x.device), state)
    few.screen()
    few.finish()
    return few, state.cpu().numpy()


def check_attempt(queries: Array, points: Array, k: int, metric: str = "euclidean") -> Array:
    """Check that these rows are proved and have the bits of the reference, and that the search then completes the
    others.
    """
    few, state = attempt(queries, points, k, metric)
    assert state[: 2 * FLAGS].tolist() == [NO_ROW] * (2 * FLAGS)
    proved = few.proved.cpu().numpy()
    assert state[2 * FLAGS :].tolist() == proved.tolist()
    truth = brute(queries, points, k, metric)
    for ours, theirs in zip(on_host(few.found), truth, strict=True):
        assert ours[proved > 0].tobytes() == theirs[proved > 0].tobytes()
    with launched() as seen:
        report = check(*tensors(DEVICE, queries, points), k, metric, **HERE)
    assert "screen_few_kernel" in {variant[0].__name__ for variant in seen}
    assert report.rows_by_precision.get("float16", 0) >= proved.sum()
    return proved


@pytest.mark.parametrize(
    ("m", "n", "d", "k"),
    [
        (1, 1, 17, 1),
        (1, 7, 17, 7),
        (2, 8, 33, 3),
        (3, 9, 128, 9),
        (4, 127, 96, 32),
        (1, 128, 64, 5),
        (1, 129, 128, 1),
        (2, 300, 130, 10),
        (1, 1500, 300, 20),
        (3, 2600, 20, 32),
    ],
)
def test_shapes(m: int, n: int, d: int, k: int) -> None:
    assert check_attempt(checks.gaussian(m, d, 1), checks.gaussian(n, d, 2), k).all()


@pytest.mark.parametrize("metric", GEMM)
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16", "uint8", "int8"])
def test_metrics_and_dtypes(metric: str, dtype: str) -> None:
    queries, points = rows_of(2, 37, dtype, metric, 1), rows_of(400, 37, dtype, metric, 2)
    assert check_attempt(queries, points, 6, metric).all()


def test_queries_may_have_another_dtype() -> None:
    assert check_attempt(checks.gaussian(2, 40, 1).astype(np.float64), checks.gaussian(300, 40, 2), 4).all()


@pytest.mark.parametrize("metric", ["euclidean", "cosine", "inner_product"])
@pytest.mark.parametrize("name", checks.HOSTILE)
def test_hostile_data(name: str, metric: str) -> None:
    points = checks.accepted(checks.HOSTILE[name](500, 20, 3), metric)
    queries = np.concatenate([points[[0, 250]], checks.accepted(checks.HOSTILE[name](1, 20, 4), metric)])
    check_attempt(queries, points, 5, metric)


@pytest.mark.parametrize("tiles", [1, 3, 50])
def test_programs_take_any_number_of_tiles(tiles: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last program has fewer tiles."""
    monkeypatch.setattr(tuning, "FEW_PROGRAMS", 1)
    monkeypatch.setattr(module, "multiprocessors", lambda device: -(-9 // tiles))
    assert check_attempt(checks.gaussian(2, 150, 1), checks.gaussian(1100, 150, 2), 8).all()


def test_strided_rows() -> None:
    wide, many = checks.gaussian(3, 70, 1), checks.gaussian(800, 61, 2)
    few = tensors(DEVICE, wide)[0][:, 3:36], tensors(DEVICE, many)[0][::2, 5:38]
    with launched() as seen:
        check(*few, 5, **HERE)
    assert "finish_few_kernel" in {variant[0].__name__ for variant in seen}


@pytest.mark.parametrize("metric", GEMM)
def test_minima_are_lower_bounds_and_close(metric: str) -> None:
    """Lemma 3, for rows whose float16 copies are far from exact, compared with scores in float64."""
    n, d = 700, 150
    queries, points = (rows.astype(np.float32) for rows in (1 + checks.gaussian(3, d, 1), 1 + checks.gaussian(n, d, 2)))
    few, _ = attempt(queries, points, 5, metric)
    given, screened = few.finish.arguments, few.screen.arguments
    tiles = given["tiles"]
    centre, scale = numpy_of(screened["centre_ptr"]), float(screened["scale_ptr"][0])

    def form(rows: Array) -> Array:
        x = rows.astype(np.float64)
        if METRICS[metric].centred:
            x = x - x.mean(axis=1, keepdims=True)
        if METRICS[metric].angular:
            x = x / np.linalg.norm(x, axis=1, keepdims=True)
        return scale * (x - centre if METRICS[metric].squares else x)

    q, x = form(queries), form(points)
    own = (x * x).sum(axis=1) if METRICS[metric].squares else np.zeros(n)
    scores = np.full((3, tiles * POINT_TILE), np.inf)
    scores[:, :n] = own - 2 * q @ x.T
    terms = (given[name] for name in ("norm_ptr", "rest_ptr", "e1_ptr", "e2_ptr"))
    norm, rest, e1, e2 = (numpy_of(term).astype(np.float64) for term in terms)
    bounds = np.repeat(norm[:, None] * e1 + rest[:, None] * e2, PER_TILE, axis=1)
    minima = numpy_of(given["minima_ptr"]).reshape(3, -1).astype(np.float64)
    lowest = scores.reshape(3, -1, GROUP).min(axis=2)
    some = np.isfinite(lowest)
    assert np.isinf(minima[~some]).all()
    assert (np.abs(minima[some] - lowest[some]) < bounds[some]).all()
    assert (bounds[some] < 0.05 * np.abs(lowest[some]).max()).all()
    tile_minima = numpy_of(given["tile_minima_ptr"]).reshape(3, -1)
    np.testing.assert_array_equal(tile_minima, minima.reshape(3, tiles, PER_TILE).min(axis=2).astype(np.float32))


@pytest.mark.parametrize("metric", GEMM)
@pytest.mark.parametrize("scale", [1.0, 1e-3, 1e9])
def test_queries_are_packed_and_measured_as_usual(metric: str, scale: float) -> None:
    """Every program packs them, and adds in another order. Queries far larger than the points are beyond range."""
    points = checks.gaussian(700, 150, 2)
    queries = np.concatenate([points[:1], (1 + checks.gaussian(2, 150, 1)) * np.float32(scale)])
    few, _ = attempt(queries, points, 5, metric)
    given = few.screen.arguments
    form = DeviceForm(metric, 150, given["centre_ptr"], given["scale_ptr"])
    usual = pack_queries(tensors(DEVICE, queries)[0], form, "float16", new_flags(given["rows_ptr"].device))
    for ours, theirs in (("norm_ptr", usual.norm), ("rest_ptr", usual.rest), ("shift_ptr", usual.shift)):
        np.testing.assert_allclose(numpy_of(given[ours]), numpy_of(theirs), rtol=1e-6)
    widened = widen(tensors(DEVICE, queries)[0], metric)
    assert torch.equal(given["widened_ptr"], widened.rows)
    assert widened.norms is None or torch.equal(given["norms_ptr"], widened.norms)
    fits = np.isfinite(numpy_of(usual.shift))
    assert fits.tolist() == [True] + 2 * [scale < 2 or METRICS[metric].angular]
    copies = numpy_of(given["packed_ptr"]).reshape(-1, 4, given["width"])
    assert len(copies) > 1
    rounded = numpy_of(usual.values)[fits]
    for copy in copies:
        # Sums in another order may round to the adjacent float16 number, also to subnormal ones.
        assert (np.abs(copy[:3][fits].astype(np.float64) - rounded) <= np.abs(np.spacing(rounded))).all()
        assert (copy == copies[0]).all()


def test_what_bounds_cannot_separate_is_not_proved() -> None:
    """The next minimum is within the bound of the k-th value, so the row is left to the retry, which proves it."""
    points = np.zeros((2000, 20), np.float32)
    points[:1000] = checks.gaussian(1000, 20)
    points[1000:, 0] = 50 + 1e-4 * np.arange(1000)  # far below the errors of float16 at 50
    queries = points[[3, 1500]] + np.float32(1e-5)
    assert check_attempt(queries, points, 5).tolist() == [1, 0]


@pytest.mark.parametrize("extra", [0, 1])
def test_one_more_point_at_the_kth_value_is_not_passed_over(extra: int) -> None:
    """As many copies as fit are all refined; with one more, a copy of a smaller id might be missed."""
    room = 16  # number of groups for k = 3
    points = np.full((4000, 24), 3, np.float32) * checks.gaussian(1, 24, 9)
    points[: GROUP * (room + extra)] = 0
    assert check_attempt(np.zeros((1, 24), np.float32), points, 3).tolist() == [1 - extra]


def test_tiles_that_are_not_looked_into_count() -> None:
    """One near point in each of 20 tiles, which bounds cannot distinguish, and no other near points."""
    points = checks.gaussian(20 * POINT_TILE, 20)
    points[::POINT_TILE] = 0
    points[::POINT_TILE, 0] = 50 + 1e-4 * np.arange(20)
    query = points[:1] + np.float32(1e-3)
    assert check_attempt(query, points, 3).tolist() == [0]


def test_it_is_the_kth_value_that_decides() -> None:
    """The first is far from all others, which are equal, so any of them may be the second."""
    points = checks.all_equal(3000, 20)
    points[-1] = points[0] + 5
    assert check_attempt(points[-1:], points, 1).tolist() == [1]
    assert check_attempt(points[-1:], points, 2).tolist() == [0]


def test_all_points_are_equal() -> None:
    assert check_attempt(checks.gaussian(1, 20, 1), checks.all_equal(3000, 20), 4).tolist() == [0]
    # all groups are refined
    assert check_attempt(checks.gaussian(1, 20, 1), checks.all_equal(60, 20), 4).tolist() == [1]


def test_the_nearest_may_be_adjacent() -> None:
    """Points in order of distance: whole tiles are nearer than all others, and chunks separate them."""
    points = checks.gaussian(6000, 24, 5)
    query = checks.gaussian(1, 24, 6)
    points = points[np.argsort(((points - query) ** 2).sum(axis=1))]
    assert check_attempt(query, points, 32).all()
    assert check_attempt(query, points[::-1].copy(), 32).all()


def test_values_that_overflow() -> None:
    """float32 results of rows at the end of the range are infinite and tie, so ids decide."""
    points = checks.gaussian(300, 20, 1)
    points[::2] *= np.float32(1e37)
    check_attempt(points[:3], points, 32, "sqeuclidean")


@pytest.mark.parametrize(("row", "value", "flag"), [(0, np.nan, 0), (2, np.inf, 0), (1, 1e200, 1)])
def test_refused_values_are_flagged(row: int, value: float, flag: int) -> None:
    queries, points = checks.gaussian(3, 40, 1).astype(np.float64), checks.gaussian(300, 40, 2).astype(np.float64)
    queries[row, 7] = value
    state = attempt(queries, points, 4)[1]
    expected = [NO_ROW] * (2 * FLAGS)
    expected[FLAGS + flag] = row
    assert state[: 2 * FLAGS].tolist() == expected
    with pytest.raises(ValueError, match=f"queries: row {row} "):
        check(*tensors(DEVICE, queries, points), 4, **HERE)


def test_flags_number_rows_from_the_first_one() -> None:
    q, x = tensors(DEVICE, checks.gaussian(2, 40, 1), checks.gaussian(300, 40, 2))
    q[1, 3] = np.nan
    flags = new_flags(x.device)
    module.search_few(q, DevicePoints(x, "euclidean", "float16"), plan_of(q, x, 4, **HERE), flags, first=7)
    assert flags.tolist() == [8, NO_ROW, NO_ROW]


def test_refused_points_are_flagged() -> None:
    queries, points = checks.gaussian(2, 40, 1), checks.gaussian(300, 40, 2)
    points[211, 3] = np.nan
    assert attempt(queries, points, 4)[1][0] == 211


@pytest.mark.parametrize(
    ("n", "m", "d", "k", "metric", "few"),
    [
        (1 << 20, 1, 128, 10, "euclidean", True),
        ((1 << 20) + 1, 1, 128, 10, "euclidean", False),
        (1000, 4, 17, 32, "cosine", True),
        (1000, 5, 17, 32, "cosine", False),
        (1000, 4, 17, 33, "cosine", False),
        (1000, 1, 16, 1, "euclidean", False),
        (1000, 1, 4097, 1, "euclidean", False),
        (1000, 1, 40, 1, "l1", False),
    ],
)
def test_which_searches_take_two_launches(n: int, m: int, d: int, k: int, metric: str, few: bool) -> None:
    rows = functools.partial(torch.empty, dtype=torch.float32, device="meta")
    plan = plan_of(rows((m, d)), rows((n, d)), k, metric)
    assert plan.few == few
    assert not plan_of(rows((m, d)), rows((n, d)), k, metric, memory=1 << 32).few


@pytest.mark.parametrize(
    ("m", "n", "d", "k"), [(1, 1, 17, 1), (1, 100_000, 128, 10), (3, 20_000, 300, 32), (4, 1 << 20, 1 << 12, 32)]
)
def test_buffers_are_within_what_is_planned(m: int, n: int, d: int, k: int) -> None:
    with rehearsing(Card((9, 0), 132)):
        q, x = (torch.empty((rows, d), dtype=torch.float64, device="meta") for rows in (m, n))
        plan = plan_of(q, x, k, "cosine")
        prepared = DevicePoints(x, "cosine", plan.precisions[0])
        state = torch.empty(2 * FLAGS + m, dtype=torch.int64, device="meta")
        few = Few(q, prepared, plan, new_flags(x.device), state)
    packed, form = prepared.copies.packed("float16"), prepared.form
    others = [q, x, prepared.flags, form.centre, form.scale, packed.values, packed.low, packed.e1, packed.e2]
    given = [*few.screen.arguments.values(), *few.finish.arguments.values()]
    held = {id(each): each for each in given if isinstance(each, torch.Tensor)}
    ours = [each.numel() * each.element_size() for key, each in held.items() if key not in set(map(id, others))]
    assert len(ours) == 17
    assert sum(ours) <= m * few_row_bytes(n, d) <= SMALL_CHANGE / 2


def test_graphs_of_few_points_take_the_usual_launches() -> None:
    """The usual launches exclude each row from its own answer."""
    (points,) = tensors(DEVICE, checks.gaussian(4, 20))
    with launched() as seen:
        check(points, points, 3, self_join=True, **HERE)
    assert "screen_few_kernel" not in {variant[0].__name__ for variant in seen}


@pytest.mark.parametrize("m", [1, 3])
@pytest.mark.parametrize("metric", ["euclidean", "correlation"])
def test_a_rehearsal_launches_what_the_search_launches(m: int, metric: str) -> None:
    queries, points = tensors(DEVICE, checks.gaussian(m, 40, 1), checks.gaussian(300, 40, 2))
    plan = plan_of(queries, points, 3, metric, **HERE)
    with launched() as seen:
        dispatch.search_once(queries, points, plan)
    card = ahead.card_of(DEVICE) if DEVICE != "cpu" else Card((0, 0), 1)
    with rehearsing(card) as rehearsal:
        rehearse_search(plan, "float32", self_join=False)
    assert set(seen) <= set(rehearsal.calls)
    assert {"screen_few_kernel", "finish_few_kernel"} <= {variant[0].__name__ for variant in seen}
    # In addition to launches that each device makes only once.
    assert {variant[0].__name__ for variant in set(rehearsal.calls) - set(seen)} <= {"products_kernel"}


@pytest.mark.parametrize("m", [2, 5])
def test_what_is_warmed_is_for_arrays_anywhere(m: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A plan for arrays in host memory does not say which arrays will be on the device."""
    plan, names = plan_of(checks.gaussian(m, 40), checks.gaussian(300, 40), 3), set[str]()

    def compile_ahead(stage: Callable[[], None], card: Card, *, progress: Any) -> int:
        with rehearsing(card) as rehearsal:
            stage()
        names.update(call.name for call in rehearsal.calls.values())
        return len(names)

    monkeypatch.setattr(dispatch, "compile_ahead", compile_ahead)
    monkeypatch.setattr(dispatch, "card_of", lambda device: Card((9, 0), 132))
    assert dispatch.warm(plan, self_join=False) == len(names)
    assert {"screen_kernel", "refine_kernel"} <= names
    assert ({"screen_few_kernel", "finish_few_kernel"} <= names) == (m == 2)


_COMPILED = """
import json
import torch
from triton.runtime import driver
from tests.helpers import plans
from tests.helpers.target_alone import TargetAlone
from tonari.cuda.compiling.compile import compile_call
from tonari.cuda.compiling.rehearsal import Card, rehearsing
from tonari.exact.cuda.attempts.rehearse import rehearse_search

driver.set_active(TargetAlone())
found = {}
for m in (1, 4):
    there = {"host_points": False, "host_queries": False}
    plan = plans.exact_cuda(100_000, m, 128, 10, devices=("cuda:0",), free_bytes=10**11, **there)
    with rehearsing(Card((9, 0), 132)) as rehearsal:
        rehearse_search(plan, "float32", self_join=False)
    for call in rehearsal.calls.values():
        if "few" in call.name:
            found[f"{call.name} {m}"] = compile_call(call).asm["ptx"]
print(json.dumps(found))
"""


@pytest.mark.full  # takes ten seconds and more in the interpreter
@pytest.mark.process
def test_sums_are_exchanged_between_few_threads(tmp_path: Path) -> None:
    """Triton chooses the layout of the products."""
    found = json.loads("".join(compiled(_COMPILED, tmp_path)))
    for m, most in ((1, 150), (4, 400)):
        screen = found[f"screen_few_kernel {m}"]
        assert screen.count("shfl.sync") < most, screen.count("shfl.sync")
        assert screen.count("ld.global.v4") >= 16  # of the points, twice
    assert found["finish_few_kernel 1"].count("shfl.sync") < 300


# On a GPU.


@on_gpu
@pytest.mark.parametrize("metric", GEMM)
@pytest.mark.parametrize(("n", "d", "k"), [(100_000, 128, 10), (1_000_000, 32, 32), (20_000, 960, 5), (777, 100, 32)])
def test_many_searches_have_the_bits_of_the_usual_launches(n: int, d: int, k: int, metric: str) -> None:
    source = torch.Generator("cuda").manual_seed(n)
    points = torch.randn(n, d, generator=source, device="cuda")
    prepared, flags = DevicePoints(points, metric, "float16"), new_flags(points.device)
    proved = 0
    for m in 10 * [1, 2, 3, 4]:
        queries = torch.randn(m, d, generator=source, device="cuda")
        plan = plan_of(queries, points, k, metric, **HERE)
        found, done = module.search_few(queries, prepared, plan, flags, first=0)
        usual = prepared.begin(queries, plan).compare(queries, None)
        rows = done > 0
        assert torch.equal(found.distances[rows], usual.distances[rows])
        assert torch.equal(found.indices[rows], usual.indices[rows])
        proved += int(rows.sum())
    assert proved > 80
