"""Rows of one-byte integers are screened in int8, whatever their dtype, and no answer changes.

Without a CUDA device the CPU plays it, in Triton's interpreter.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from tests.helpers.checks import Array, assert_same_neighbors
from tests.helpers.devices import HAS_TORCH, needs_torch, on_gpu
from tests.helpers.gpu_checks import DEVICE, GB, on_host, plan_of
from tests.helpers.plans import exact_cuda
from tonari.core.process.caches import empty_caches
from tonari.exact.cuda import tuning
from tonari.metrics.reference import brute

pytestmark = [needs_torch]
if HAS_TORCH:
    import torch

    from tonari.cuda.compiling.rehearsal import Card, rehearsing
    from tonari.exact.cuda import dispatch
    from tonari.exact.cuda.attempts import as_bytes as module
    from tonari.exact.cuda.attempts.as_bytes import AsBytes, BytePoints, byte_points, in_int8
    from tonari.exact.cuda.attempts.first import DevicePoints
    from tonari.exact.cuda.attempts.retries.attempt import Unproved
    from tonari.exact.cuda.routes.resident import prepare_resident_once, search_resident
    from tonari.exact.cuda.rows.bytes import shifts_of
    from tonari.exact.cuda.rows.pack import pack_points
    from tonari.exact.cuda.screens import mirrored
    from tonari.exact.report import Report

N, M, D, K = 150, 20, 40, 5


def rows_of_bytes(n: int, d: int = D, dtype: str = "float32", seed: int = 0) -> Array:
    """Make rows from dark to bright; some are copies, some differ from others in a single element."""
    rng = np.random.default_rng(seed)
    rows = np.clip(rng.integers(0, 256, (n, 1)) + rng.integers(-9, 10, (n, d)), 0, 255)
    rows[1::5] = rows[::5][: len(rows[1::5])]
    rows[2::5] = rows[::5][: len(rows[2::5])]
    rows[2::5, 0] = 255 - rows[2::5, 0]
    return (rows - 128 if dtype == "int8" else rows).astype(dtype)


def tensor(rows: Array) -> Any:
    return torch.from_numpy(rows).to(DEVICE)


def plan(queries: Any, points: Any, k: int = K, metric: str = "euclidean", **choices: Any) -> Any:
    made = plan_of(queries, points, k, metric, devices=(DEVICE,), **choices)
    return dataclasses.replace(made, bytes_first=True)


def search(queries: Any, points: Any, made: Any, *, self_join: bool = False) -> tuple[Any, Report, Any]:
    """Search once, and return the neighbours, the report, and the prepared points."""
    prepared = prepare_resident_once(queries, points, made)
    found, report = search_resident(queries, prepared, made, self_join=self_join, progress=False)
    return on_host(found), report, prepared


def packings(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record the precisions in which all points are packed from now on, in order."""
    packed: list[str] = []

    def spy(rows: Any, form: Any, precision: str, *given: Any, **named: Any) -> Any:
        if len(rows) == N:
            packed.append(precision)
        return pack_points(rows, form, precision, *given, **named)

    monkeypatch.setattr("tonari.exact.cuda.rows.prepared.pack_points", spy)
    return packed


@pytest.mark.parametrize(
    ("rows", "shifts"),
    [
        ([[0.0, 255.0]], [128]),
        ([[-128.0, 127.0]], [0]),
        ([[0.0, 127.0]], [128, 0]),
        ([[-1.0, 128.0]], []),
        ([[0.0, 256.0]], []),
        ([[-129.0, 0.0]], []),
        ([[0.0, 0.5]], []),
        ([[0.0, np.nan]], []),
        ([[0.0, np.inf]], []),
        ([[-0.0, 3.0]], [128, 0]),
    ],
)
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "bfloat16"])
def test_shifts_of_floats(rows: list[list[float]], shifts: list[int], dtype: str) -> None:
    made = torch.tensor(rows, dtype=getattr(torch, dtype), device=DEVICE)
    assert shifts_of(made.repeat(3, 1)) == shifts


def test_shifts_of_whole_numbers() -> None:
    for dtype, values, shifts in (
        (torch.uint8, [0, 255], [128]),
        (torch.uint8, [0, 127], [128, 0]),
        (torch.int8, [-128, 127], [0]),
        (torch.int8, [5, 6], [128, 0]),
    ):
        assert shifts_of(torch.tensor([values], dtype=dtype, device=DEVICE)) == shifts


@pytest.mark.parametrize("metric", ["euclidean", "sqeuclidean"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "uint8", "int8"])
def test_answers_are_those_of_the_reference(dtype: str, metric: str) -> None:
    points, queries = rows_of_bytes(N, dtype=dtype), rows_of_bytes(M, dtype=dtype, seed=1)
    q, p = tensor(queries), tensor(points)
    found, report, prepared = search(q, p, plan(q, p, metric=metric))
    assert isinstance(prepared, BytePoints)
    assert_same_neighbors(found, brute(queries, points, K, metric), metric=metric)
    assert report.rows_by_precision.get("int8", 0) > M // 2


def one_step_apart(n: int = N, d: int = 900) -> Array:
    """Make rows whose neighbours only int8 distinguishes: float32 sums of so many products round by more than their
    differences.
    """
    rng = np.random.default_rng(0)
    points = np.where(rng.random((n, 1)) < 0.5, 255.0, 0.0) * np.ones((n, d))
    points[np.arange(n), np.arange(n)] = 128 - 5 * (np.arange(n) % 3)
    return points.astype(np.float32)


@pytest.mark.full  # takes ten seconds and more in the interpreter
def test_ties_are_all_that_is_left() -> None:
    """Rows whose neighbours are one step apart are proved; no other precision proves rows of this length."""
    points = one_step_apart()
    p = tensor(points)
    made = plan(p, p, 3, self_join=True, width=N // 8)
    found, report, _ = search(p, p, made, self_join=True)
    assert_same_neighbors(found, brute(points, points, 3, self_ids=np.arange(N)))
    assert report.rows_by_precision == {"int8": N}


@pytest.mark.full  # takes ten seconds and more in the interpreter
@pytest.mark.parametrize("bad", [0.5, 256.0, -1.0])
def test_an_element_that_the_sample_misses(bad: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tonari.exact.cuda.tuning.BYTES_SAMPLE", 10)
    points = rows_of_bytes(N)
    points[7, 3] = bad
    p = tensor(points)
    assert shifts_of(p)
    assert byte_points(p, p, plan(p, p)) is None
    found, report, prepared = search(p, p, plan(p, p))
    assert type(prepared) is DevicePoints
    assert "int8" not in report.rows_by_precision
    assert_same_neighbors(found, brute(points, points, K))


@pytest.mark.parametrize("shift", [0.25, 300.0, -200.0])
def test_queries_that_are_no_bytes_begin_with_float16(shift: float, monkeypatch: pytest.MonkeyPatch) -> None:
    points = rows_of_bytes(N)
    queries = rows_of_bytes(M, seed=2) + np.float32(shift)
    q, p = tensor(queries), tensor(points)
    packed = packings(monkeypatch)
    found, report, prepared = search(q, p, plan(q, p))
    assert type(prepared) is DevicePoints
    assert "int8" not in report.rows_by_precision
    assert packed == ["float16"]
    assert_same_neighbors(found, brute(queries, points, K))


def test_queries_in_host_memory_are_looked_at_there(monkeypatch: pytest.MonkeyPatch) -> None:
    points, queries = rows_of_bytes(N), rows_of_bytes(M, seed=2)
    packed = packings(monkeypatch)
    for rows, precision in ((queries, "int8"), (queries + np.float32(0.5), "float16")):
        found, _, _ = search(rows, tensor(points), plan(tensor(rows), tensor(points)))
        assert packed == [precision]
        assert_same_neighbors(found, brute(rows, points, K))
        packed.clear()


@pytest.mark.parametrize("noise", [0.25, 1e-7])
def test_errors_of_other_rows_are_measured(noise: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that should not be screened in int8 get the same answers, only later."""
    monkeypatch.setattr(BytePoints, "is_usable", lambda self: True)
    monkeypatch.setattr(BytePoints, "_holds", lambda self, queries: True)
    monkeypatch.setattr("tonari.exact.cuda.attempts.as_bytes.shifts_of", lambda rows: [128])
    rng = np.random.default_rng(3)
    points, queries = (rows_of_bytes(n, dtype="float64", seed=n) + noise * rng.standard_normal((n, D)) for n in (N, M))
    points[0], queries[0] = 1e4, -1e4  # beyond range
    q, p = tensor(queries), tensor(points)
    found, report, prepared = search(q, p, plan(q, p))
    assert isinstance(prepared, BytePoints)
    assert_same_neighbors(found, brute(queries, points, K))
    assert report.rows_by_precision.get("int8", 0) < M


@pytest.mark.full  # takes ten seconds and more in the interpreter
def test_graphs_in_batches() -> None:
    """Values are computed from the packed rows of each batch."""
    points = rows_of_bytes(N)
    p = tensor(points)
    found, report, _ = search(p, p, plan(p, p, self_join=True, query_batch=128), self_join=True)
    assert_same_neighbors(found, brute(points, points, K, self_ids=np.arange(N)))
    assert report.rows_by_precision.get("int8", 0) > N // 2


def test_graphs_with_copies() -> None:
    points = rows_of_bytes(N)
    points[40:90] = points[40]
    p = tensor(points)
    made = dataclasses.replace(plan(p, p, 3, self_join=True), subsets=True, seconds=1.0)
    assert made.copies_first
    found, report, prepared = search(p, p, made, self_join=True)
    assert isinstance(prepared.searched, BytePoints)
    assert report.rows_by_precision["copies"] == 50 - 4
    assert_same_neighbors(found, brute(points, points, 3, self_ids=np.arange(N)))


@pytest.mark.full  # takes ten seconds and more in the interpreter
def test_retries_among_some_points_keep_the_shift(monkeypatch: pytest.MonkeyPatch) -> None:
    """Searches among some of the points use the same shift as all points."""
    forms = []
    began = DevicePoints.begin

    def spy(self: Any, queries: Any, made: Any) -> Any:
        if not self.form.centre.is_meta:  # not a rehearsal
            forms.append((made.precisions[0], self.form.centre.unique().tolist()))
        return began(self, queries, made)

    monkeypatch.setattr(DevicePoints, "begin", spy)
    monkeypatch.setattr("tonari.exact.cuda.tuning.COPIES_LEFT", 1)
    monkeypatch.setattr("tonari.exact.cuda.tuning.OF_ATTEMPT", 0)  # no number of rows counts as few
    points = rows_of_bytes(N)
    points[20:140] = points[20]
    p = tensor(points)
    made = dataclasses.replace(plan(p, p, K, self_join=True, width=1), subsets=True)
    found, _, _ = search(p, p, made, self_join=True)
    assert_same_neighbors(found, brute(points, points, K, self_ids=np.arange(N)))
    assert forms
    assert all(seen == ("int8", [128.0]) for seen in forms)


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch, attempts: None) -> list[int]:
    """No number of rows counts as few, and only unproved rows are checked for bytes; return the number of rows of each
    check.
    """
    seen: list[int] = []
    look = module.shifts_of
    monkeypatch.setattr(tuning, "AS_BYTES_PRODUCTS", 0)
    monkeypatch.setattr(module, "shifts_of", lambda rows: seen.append(len(rows)) or look(rows))
    return seen


def left_later(queries: Any, points: Any, k: int, **choices: Any) -> Any:
    return dataclasses.replace(plan_of(queries, points, k, devices=(DEVICE,), **choices), bytes_first=False)


@pytest.mark.full  # takes ten seconds and more in the interpreter
@pytest.mark.parametrize("graph", [False, True])
def test_rows_that_float16_leaves_are_searched_in_int8(graph: bool, later: list[int]) -> None:
    points = one_step_apart(40 if graph else N)
    n = len(points)
    p = tensor(points)
    q = p if graph else p[:M]
    found, report, prepared = search(q, p, left_later(q, p, 3, self_join=graph, width=n // 8), self_join=graph)
    assert type(prepared) is DevicePoints
    own = np.arange(n) if graph else None
    assert_same_neighbors(found, brute(points[: len(q)], points, 3, self_ids=own))
    assert later == [n, report.rows_by_precision["int8"]]
    assert sum(report.rows_by_precision.values()) == len(q)
    assert set(report.rows_by_precision) <= {"float16", "int8"}


@pytest.mark.full  # takes ten seconds and more in the interpreter
@pytest.mark.parametrize("noise", ["points", "queries", "nothing is said"])
def test_rows_that_are_no_bytes_climb_as_usual(noise: str, later: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[Any] = []
    monkeypatch.setattr(BytePoints, "begin", lambda *given: begun.append(given))
    left: list[int] = []
    worth = AsBytes.worth
    monkeypatch.setattr(AsBytes, "worth", lambda self, rows: left.append(len(rows.look())) or worth(self, rows))
    points = one_step_apart()
    queries = points[:M].copy()
    if noise == "points":
        points[0, 0] += 0.5
    if noise == "queries":
        queries += np.float32(0.5)
    q, p = tensor(queries), tensor(points)
    made = left_later(q, p, 3, width=N // 8)
    if noise == "nothing is said":
        made = dataclasses.replace(made, bytes_later=False)
    found, report, _ = search(q, p, made)
    assert_same_neighbors(found, brute(queries, points, 3))
    assert "int8" not in report.rows_by_precision
    assert left[0] > 1
    assert not begun
    assert later == {"points": [N], "queries": [N, left[0]], "nothing is said": []}[noise]


@pytest.mark.parametrize("bad", [0.5, *(pytest.param(value, marks=pytest.mark.full) for value in (256.0, -1.0))])
def test_an_element_that_the_sample_misses_later(bad: float, later: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tonari.exact.cuda.tuning.BYTES_SAMPLE", 10)
    points = one_step_apart()
    queries = points[:M].copy()
    points[7, 3] = bad
    q, p = tensor(queries), tensor(points)
    found, report, _ = search(q, p, left_later(q, p, 3, width=N // 8))
    assert later[0] == N
    assert len(later) == 2
    assert "int8" not in report.rows_by_precision
    assert_same_neighbors(found, brute(queries, points, 3))


@pytest.mark.full  # takes ten seconds and more in the interpreter
def test_searches_of_some_rows_do_not_look_again(later: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Searches among some of the points do not check again."""
    points = one_step_apart()
    points[:, 0] += np.float32(0.5)
    points[5:140] = points[5]
    queries = points[:12]
    q, p = tensor(queries), tensor(points)
    monkeypatch.setattr("tonari.exact.cuda.tuning.COPIES_LEFT", 1)
    among: list[int] = []
    search_among = Unproved.among
    monkeypatch.setattr(Unproved, "among", lambda *given: among.append(1) or search_among(*given))
    made = dataclasses.replace(left_later(q, p, 3, width=1), subsets=True)
    found, _, _ = search(q, p, made)
    assert_same_neighbors(found, brute(queries, points, 3))
    assert among
    assert later == [N]


@pytest.mark.full  # takes ten seconds and more in the interpreter
def test_so_few_products_are_left_that_another_copy_is_not_worth_it(
    later: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    p = tensor(one_step_apart())
    q = p[:9]
    made = left_later(q, p, 3, width=N // 8)
    _, report, _ = search(q, p, made)
    left = report.rows_by_precision["int8"]
    for least, looks in ((left * N * 900, 2), (left * N * 900 + 1, 0)):
        later.clear()
        monkeypatch.setattr(tuning, "AS_BYTES_PRODUCTS", least)
        empty_caches()  # rows that another search left unproved would be searched at once
        search(q, p, made)
        assert len(later) == looks


def test_few_rows_are_looked_at_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """In host memory: no sample is taken if these rows show that it would be useless."""
    points = rows_of_bytes(N)
    assert shifts_of(tensor(points)) == [128]
    monkeypatch.setattr("tonari.exact.cuda.tuning.BYTES_SAMPLE", 0)  # a sample would divide by it
    for bad in (0.5, np.nan, -np.inf, 256.0):
        points[2, 3] = bad
        assert shifts_of(tensor(points)) == []
    with pytest.raises(ZeroDivisionError):
        shifts_of(tensor(rows_of_bytes(N)))


def test_plans_say_when_they_look() -> None:
    facts: dict[str, Any] = {"n": 10**6, "m": 10**6, "d": 768, "k": 10, "self_join": True, "free_bytes": 130 * GB}

    def looks(**given: Any) -> bool:
        return bool(exact_cuda(**{**facts, "devices": ("cuda:0",), **given}).bytes_first)

    assert looks()
    assert looks(metric="sqeuclidean")
    assert looks(dtype="uint8")
    assert looks(form_dim="full")
    assert looks(d=17)
    assert not looks(d=16)
    assert not looks(metric="cosine")
    assert not looks(metric="inner_product")
    assert not looks(metric="l1")
    assert not looks(precisions=("float16", "split", "values"))
    assert not looks(form_dim=64)
    assert not looks(devices=("cuda:0", "cuda:1"))
    assert not looks(route="streamed", host_points=True, host_queries=True)
    assert looks(n=30_000, m=30_000)
    assert not looks(n=10_000, m=10_000)
    later = exact_cuda(**{**facts, "devices": ("cuda:0",), "n": 10_000, "m": 10_000})
    assert later.bytes_later
    assert exact_cuda(**{**facts, "devices": ("cuda:0", "cuda:1")}).bytes_later
    from_host = {"devices": ("cuda:0",), "route": "host_refine", "host_points": True, "host_queries": True}
    assert not exact_cuda(**{**facts, **from_host}).bytes_later  # the CPU refines, and does not check for bytes
    for given in ({"metric": "cosine"}, {"d": 16}, {"precisions": ("float16", "split", "values")}, {"form_dim": 64}):
        assert not exact_cuda(**{**facts, "devices": ("cuda:0",), **given}).bytes_later


def test_precisions_of_plans() -> None:
    made = plan(*(torch.zeros((N, D), device=DEVICE) for _ in range(2)))
    assert in_int8(made).precisions == ("int8", "float16", "values")
    short = dataclasses.replace(made, precisions=("float16", "values"))
    assert in_int8(short).precisions == ("int8", "values")  # there is no memory for a second packed copy
    assert in_int8(in_int8(made)) == in_int8(made)


def test_a_contraction_has_to_be_faster_than_int8(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def spy(points: Any, form: Any, k: int, m: int, columns: int) -> None:
        asked.append(columns)

    monkeypatch.setattr("tonari.exact.cuda.attempts.contracted.choose_contraction", spy)
    for noise, m in ((0.0, 10**12), (0.0, 10**6), (0.5, 10**6)):
        p = tensor(rows_of_bytes(N, 99) + np.float32(noise))
        prepare_resident_once(p, p, dataclasses.replace(plan(p, p), form_dim="pilot", m=m))
    assert asked == [50, 99]  # the second search is too short


def test_a_rehearsal_is_in_int8_too() -> None:
    p = tensor(rows_of_bytes(N))
    made = plan(p, p)
    prepared = prepare_resident_once(p, p, made)
    with rehearsing(Card((9, 0), 132)):
        twin = prepared.without_data()
        begun = twin.begin(twin.points, made)
    assert isinstance(twin, BytePoints)
    assert twin.points.device.type == twin.form.centre.device.type == "meta"
    assert begun.plan == prepared.begin(p, made).plan == in_int8(made)


def test_no_copy_is_kept_that_the_plan_does_not_count() -> None:
    """Queries that are not bytes start in float16, and then no copy in int8 is kept."""
    p = tensor(rows_of_bytes(N))
    prepared = prepare_resident_once(p, p, plan(p, p))
    prepared.begin(p + 0.5, plan(p, p))
    assert not prepared.copies._made


@on_gpu
@pytest.mark.parametrize("d", [20, 128, 250, 300, 768, 1500])
@pytest.mark.parametrize("dtype", ["float32", "uint8"])
def test_long_searches_on_a_gpu(d: int, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the public functions: every kernel that a GPU uses for rows of this length, mirrored or not."""
    of_graph = []
    screened = mirrored.Mirror.screened
    monkeypatch.setattr(mirrored.Mirror, "screened", lambda *given: of_graph.append(1) or screened(*given))
    p = tensor(rows_of_bytes(40_000, d, dtype))
    for queries, graph in ((tensor(rows_of_bytes(3000, d, dtype, seed=1)), False), (p, True)):
        made = plan(queries, p, 10, self_join=graph, query_batch=2048)
        old = dataclasses.replace(made, bytes_first=False, mirrored_slots=0)
        found, expected = (
            on_host(dispatch.search_once(queries, p, each, self_join=graph, progress=False)) for each in (made, old)
        )
        np.testing.assert_array_equal(found.indices, expected.indices)
        np.testing.assert_array_equal(found.distances, expected.distances)
    assert bool(of_graph) == (d > 256)
