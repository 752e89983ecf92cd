"""Codes: bounds that hold and are needed, one pass over the rows, the choice of columns, and the memory."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.exact.cpu.test_memory import MARGIN, run
from tests.helpers import checks
from tests.helpers.checks import assert_same_neighbors
from tonari.core.results.neighbors import Neighbors
from tonari.exact.cpu.rows.code_forms import PRECISION, CodeForm, choose_form, overrides_of
from tonari.exact.cpu.rows.codes import CodedPoints, WrittenCodes
from tonari.exact.cpu.search import search_prepared
from tonari.exact.planning.planner import plan_on_cpu
from tonari.metrics.problem import make_problem
from tonari.metrics.reference import brute

Array = npt.NDArray[Any]
N, D, K = 3000, 48, 8


def rows_of_few_directions(n: int = N, d: int = D, power: float = 1.0) -> Array:
    rng = np.random.default_rng(5)
    turned = np.linalg.qr(rng.standard_normal((d, d)))[0]
    return ((rng.standard_normal((n, d)) / np.arange(1, d + 1) ** power) @ turned).astype(np.float32)


def coded(points: Array, columns: int, metric: str = "euclidean", m: int = 9) -> tuple[CodedPoints, CodeForm, Any]:
    problem = make_problem(len(points), m, points.shape[1], K, dtype="float32", metric=metric, threads=1)
    form = choose_form(points, problem, columns)
    plan = plan_on_cpu(problem, **overrides_of(form.columns))
    return CodedPoints(points, plan, form), form, plan


def parts_of(packed: WrittenCodes, group: int) -> dict[str, slice]:
    """The position of every array among the bytes of a slice of codes; see visit_arrays in native/exact/pack.cpp."""
    groups = -(-(packed.end - packed.begin) // group)
    place, each = 4 * (groups * group + 16), 4 * groups
    sizes = {"low": place, "error_query": place, "error_rest": place, "error_own": place}
    sizes |= {"group_error_query": each, "group_error_rest": each, "group_scale": each, "correction": place}
    at = len(packed.packed) - sum(sizes.values())
    found = {"data": slice(0, at)}
    for name, size in sizes.items():
        found[name] = slice(at, at + size)
        at += size
    return found


@pytest.mark.parametrize("metric", ["euclidean", "cosine", "inner_product"])
@pytest.mark.parametrize("columns", [12, D])
def test_codes_that_were_written_answer_as_before(columns: int, metric: str) -> None:
    points = rows_of_few_directions()
    queries = points[:9] + np.float32(1e-3)
    prepared, form, plan = coded(points, columns, metric)
    again = CodedPoints(points, plan, form, written=prepared.written(), boxes=prepared.boxes)
    found = search_prepared(queries, again, plan)[0]
    assert_same_neighbors(found, brute(queries, points, K, metric), metric=metric)


def rows_at_the_middle_of_a_step(of: str) -> tuple[Array, Array]:
    """Make a query and points.

    The last point is nearest; its elements, or those of the query, are rounded by half a step.

    One element is 127, so the step is 1. The codes of all points have about the same products with the query's code.
    """
    points, query = np.full((400, D), 100.0, np.float32), np.ones((1, D), np.float32)
    if of == "points":
        points[:, 0], query[0, 0] = 127, 0
        points[:-1, 1:], points[-1, 1:] = 100.3, 100.49
    else:
        points[:, 0], query[:, 0] = 0, 127
        query[:, 1:] = 100.49
        points[:-1, 1] = 99
    return query, points


@pytest.mark.parametrize("m", [1, 64], ids=["few", "tiles"])  # bounds of points, and first of groups
@pytest.mark.parametrize("of", ["points", "queries"])
def test_the_measured_errors_are_needed(of: str, m: int) -> None:
    query, points = rows_at_the_middle_of_a_step(of)
    queries = np.repeat(query, m, axis=0)
    prepared, form, plan = coded(points, D, "inner_product", m=m)
    written = prepared.written()
    found = search_prepared(queries, CodedPoints(points, plan, form, written=written), plan)[0]
    assert (found.indices[:, 0] == 399).all()
    group = prepared.resident(plan.kernels[PRECISION])[0].group
    # errors of points in units of |q|, and of the query in units of the errors of points
    for name in ("query", "rest"):
        bare = []
        for part in written:
            packed = part.packed.copy()
            for errors in (f"error_{name}", f"group_error_{name}"):
                packed[parts_of(part, group)[errors]] = 0
            bare.append(part._replace(packed=packed))
        found = search_prepared(queries, CodedPoints(points, plan, form, written=bare), plan)[0]
        lost = name == {"points": "query", "queries": "rest"}[of]
        assert (found.indices[:, 0] != 399).all() == lost  # with too small a bound, the nearest point is excluded


def test_no_lower_bound_is_above_the_score() -> None:
    """Bounds in float64 from the bytes of the codes are below every true score, by at most twice the errors."""
    points = rows_of_few_directions(500)
    prepared, form, plan = coded(points, 12)
    assert form.directions is not None
    moved = (points.astype(np.float64) - form.centre) * form.scale
    contracted = moved @ form.directions
    rest = np.sqrt(np.maximum((moved**2).sum(1) - (contracted**2).sum(1), 0))
    rows = np.column_stack([contracted, rest])[prepared.order]
    group = prepared.resident(plan.kernels[PRECISION])[0].group
    for part in prepared.written():
        arrays = parts_of(part, group)
        count = part.end - part.begin
        errors = part.packed[arrays["error_query"]].view(np.float32)[:count].astype(np.float64)
        step = np.repeat(part.packed[arrays["group_scale"]].view(np.float32), group)[:count]
        apart = errors / 2
        rounded = np.round(rows[part.begin : part.end] / step[:, None]).clip(-127, 127) * step[:, None]
        true = np.linalg.norm(rows[part.begin : part.end] - rounded, axis=1)
        assert (true <= apart).all()
        assert (apart <= true * 1.001 + 1e-6).all()


def test_one_pass_over_the_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    points, seen = rows_of_few_directions(40_000), [0]
    problem = make_problem(len(points), 9, D, K, dtype="float32", metric="euclidean", threads=1)
    form = choose_form(points, problem)
    plan = plan_on_cpu(problem, **overrides_of(form.columns))

    class Counted(np.ndarray):
        def __getitem__(self, key: Any) -> Any:
            part = np.asarray(super().__getitem__(key))
            seen[0] += len(part)
            return part

    prepared = CodedPoints(points.view(Counted), plan, form)
    assert seen[0] <= 3 * len(points)  # each slice is checked and put in order, and then its pages are forgotten
    assert [begin for begin, _, _ in prepared.checksums] == [begin for begin, _ in prepared.slices]


CHILD = """
import re
import numpy as np, tonari

def peak(what):
    return int(re.search(what + r":\\s+(\\d+) kB", open("/proc/self/status").read())[1]) * 1024

tonari.Index({path!r} + ".small.npy", codes="int8", threads=2).search(np.zeros((300, 64), np.float32), 10)
open("/proc/self/clear_refs", "w").write("5")
before, held = peak("VmHWM"), peak("RssAnon")
index = tonari.Index({path!r}, codes="int8", threads=2, memory={memory})
made = peak("VmHWM") - before
queries = index.points[:500].copy()
found = index.search(queries, 10)
print(made, peak("RssAnon") - held, index._state.largest.held_bytes)
print(int(found.indices[:, 0].tolist() == list(range(500))))
"""


PASS = """
import threading, time
import tonari
Index = tonari.Index  # imported here: CPython reports an interrupt within an import's exec() in the exit status, too
print("started", flush=True)
try:
    Index({path!r}, codes="int8", form_dim=64)
except KeyboardInterrupt:
    print("stopped", time.time(), flush=True)
else:
    print("finished", flush=True)
print("threads", threading.active_count(), flush=True)
"""


@pytest.mark.process
@pytest.mark.skipif(not os.access("/proc/self/clear_refs", os.W_OK), reason="the peak cannot be measured here")
def test_peak_stays_within_the_budget(tmp_path: Path) -> None:
    points = np.random.default_rng(0).random((400_000, 64), np.float32)
    path = str(tmp_path / "points.npy")
    np.save(path, points)
    np.save(path + ".small.npy", points[:5000])
    memory = 60_000_000
    made, left, held, right = run(CHILD.format(path=path, memory=memory))
    assert right == 1
    assert held > 400_000 * 64
    # Rows that are read are pages of the file: one slice per thread while codes are computed.
    pages = 2 * (1 << 21) * 4
    assert made < memory + pages + MARGIN
    # Pages of the file that searches have read are not counted, because the system reclaims them when it needs memory.
    assert 0.8 * held < left < memory + MARGIN


@pytest.mark.process
def test_an_interrupt_ends_the_pass_at_once(tmp_path: Path) -> None:
    path = str(tmp_path / "points.npy")
    np.lib.format.open_memmap(path, "w+", np.float32, (6_000_000, 128))  # zeros, which occupy no disk space
    checks.check_interrupt(PASS.format(path=path))


def test_the_same_answer_for_any_slices() -> None:
    points = rows_of_few_directions(900)
    queries = points[:20] + np.float32(0.02)
    expected = brute(queries, points, K)
    for chunk in (96, 192):
        problem = make_problem(900, 20, D, K, dtype="float32", metric="euclidean", threads=2)
        form = choose_form(points, problem, 10)
        plan = plan_on_cpu(problem, **overrides_of(form.columns), point_chunk=chunk)
        prepared = CodedPoints(points, plan, form)
        assert len(prepared.slices) == -(-900 // chunk)
        found: Neighbors = search_prepared(queries, prepared, plan)[0]
        assert_same_neighbors(found, expected)
