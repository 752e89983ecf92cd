"""The order of attempts: levels in reports, launches and waits of searches of small data.

`order.json` has the expected order. After an intended change, `python -m tests.exact.cuda.attempts.test_order` writes
it again. Only for the interpreter: a GPU rounds sums differently, and proves other rows.
"""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from tests.helpers import checks
from tests.helpers.checks import Array, assert_same_neighbors, gaussian
from tests.helpers.devices import HAS_CUDA, HAS_TORCH, needs_torch
from tests.helpers.gpu_checks import DEVICE, clusters_for_each_precision, on_host, plan_of, tensors
from tonari.exact.cuda import tuning
from tonari.metrics.reference import brute

pytestmark = [
    needs_torch,
    pytest.mark.skipif(HAS_CUDA, reason="on a card other rows are proved, whose sums are rounded otherwise"),
]
if HAS_TORCH:
    from tests.helpers.steps import in_short, steps
    from tonari.core.trail import Record, recording
    from tonari.exact.cuda import dispatch
    from tonari.exact.report import Report

EXPECTED = Path(__file__).with_name("order.json")
ONE = {"group": 8, "width": 1}
ALL = {"precisions": ("float16", "split", "values"), **ONE}
TWO = {"precisions": ("float16", "values"), **ONE}
ATTEMPTS = {"OF_ATTEMPT": -1}  # no number of rows is so small that rows are compared with all points


class Case(NamedTuple):
    """A search: rows, overrides of its plan, changes of the plan that no override makes, and tuned numbers."""

    queries: Array | None  # None for a graph
    points: Array
    k: int = 3
    overrides: dict[str, Any] = {}  # noqa: RUF012 - never written
    changes: dict[str, Any] = {}  # noqa: RUF012
    constants: dict[str, Any] = {}  # noqa: RUF012
    metric: str = "euclidean"
    host: bool = False


def tight(n: int, seed: int = 0) -> Array:
    """Make rows of four clusters that are far apart compared with their width."""
    centres = 1e6 * gaussian(4, 5, 7)
    return centres[np.arange(n) % 4] + gaussian(n, 5, seed)


def with_copies() -> tuple[Array, Array]:
    """Make points with more copies of a row than are refined, three queries among the copies, and three elsewhere."""
    rows = gaussian(30, 6)
    copies = np.repeat(8 * rows[:1], 150, 0)
    return np.concatenate([copies[:3] * np.float32(1.01), rows[5:8]]), np.concatenate([copies, rows])


def with_bytes(n: int, d: int = 900) -> Array:
    """Make rows that differ in a single element; float16 does not prove them, because its sums round."""
    points = np.where(np.random.default_rng(0).random((n, 1)) < 0.5, 255.0, 0.0) * np.ones((n, d))
    points[np.arange(n), np.arange(n)] = 128 - 5 * (np.arange(n) % 3)
    return points.astype(np.float32)


def near_a_plane(n: int, d: int = 19, seed: int = 0) -> Array:
    """Make rows near a three-dimensional plane, with some noise in all other dimensions."""
    return gaussian(n, 3, seed) @ gaussian(3, d, 1000) + np.float32(1e-2) * gaussian(n, d, seed + 1)


def far_in_all_dimensions() -> tuple[Array, Array]:
    """Make points, and queries: contracted rows prove one of them in float16, and one in split precision."""
    rng = np.random.default_rng(0)
    easy, close, other, same = (np.zeros((n, 20), np.float32) for n in (140, 300, 140, 140))
    easy[:, :3] = rng.standard_normal((140, 3))
    close[:, 0] = 40 + 5e-3 * np.arange(300)
    other[:] = rng.standard_normal((140, 20))
    other[:, 1] += 40
    same[:, 2] = 40
    parts = easy, close, other, same
    return np.stack([part[70] + np.float32(1e-4) for part in parts]), np.vstack(parts)


PROVED = gaussian(3, 19, 1), gaussian(140, 19)
LEVELS = clusters_for_each_precision()
CASES = {
    "gaussian": Case(*PROVED, overrides={"width": 4}),
    "one query": Case(PROVED[0][:1], PROVED[1]),
    "one query beside copies": Case(PROVED[1][:1], np.repeat(PROVED[1][:1], 300, 0), constants=ATTEMPTS),
    "batches": Case(gaussian(5, 19, 1), PROVED[1], overrides={"query_batch": 2}),
    "k is n": Case(*PROVED, k=140),
    "another metric": Case(*PROVED, metric="l1", overrides={"width": 4}),
    "equal points": Case(gaussian(2, 5), checks.all_equal(140, 5, 1), metric="l1", overrides=ONE),
    "few are left": Case(*LEVELS, overrides=ALL),
    "every level": Case(*LEVELS, overrides=ALL, constants=ATTEMPTS),
    "tight far clusters": Case(
        checks.tight_far_clusters(4, 6), checks.tight_far_clusters(300, 6, 1), overrides=ALL, constants=ATTEMPTS
    ),
    "copies": Case(*with_copies(), overrides=TWO, changes={"subsets": True}, constants={**ATTEMPTS, "COPIES_LEFT": 2}),
    "no copies": Case(*LEVELS, overrides=TWO, changes={"subsets": True}, constants={**ATTEMPTS, "COPIES_LEFT": 1}),
    "copies first": Case(None, with_copies()[1], changes={"subsets": True, "seconds": 1.0}),
    "copies of bytes first": Case(
        None, np.rint(9 * with_copies()[1]), changes={"subsets": True, "seconds": 1.0, "bytes_first": True}
    ),
    "bytes": Case(with_bytes(40)[:9], with_bytes(40), changes={"bytes_first": True}),
    "bytes, of points alone": Case(with_bytes(40)[:9] + np.float32(0.5), with_bytes(40), changes={"bytes_first": True}),
    "bytes later": Case(
        None,
        with_bytes(40),
        overrides={"width": 5},
        changes={"bytes_later": True},
        constants={**ATTEMPTS, "AS_BYTES_PRODUCTS": 0},
    ),
    "bytes later, of points alone": Case(
        with_bytes(150)[:9] + np.float32(0.5),
        with_bytes(150),
        overrides={"width": 5},
        changes={"bytes_later": True},
        constants={**ATTEMPTS, "AS_BYTES_PRODUCTS": 0},
    ),
    "nearby before levels": Case(
        tight(16, 1),
        tight(240),
        overrides=TWO,
        changes={"subsets": True},
        constants={"NEARBY_SCREEN": 1, "NEARBY_OF_ROUND": 1},
    ),
    "nearby where no level proves": Case(
        tight(16, 1),
        tight(240),
        overrides={**TWO, "width": 2},
        changes={"subsets": True},
        constants={"NEARBY_VALUES": 1, "NEARBY_OF_ROUND": 1},
    ),
    "nearby after levels": Case(
        tight(3, 1)[[0, 1, 2, 2]] * np.float32(0.5),
        tight(240),
        overrides=TWO,
        changes={"subsets": True},
        constants={**ATTEMPTS, "NEARBY_VALUES": 1, "NEARBY_OF_ROUND": 1},
    ),
    "graph": Case(None, checks.duplicates(60, 19), overrides={"query_batch": 25}),
    "contracted": Case(near_a_plane(3), near_a_plane(140), overrides={"form_dim": 4}),
    "contracted, every level": Case(
        *far_in_all_dimensions(),
        overrides={"group": 8, "width": 4, "form_dim": 4},
        constants={**ATTEMPTS, "ROOMY": 4},
    ),
    "contracted, fitted": Case(
        gaussian(2, 6), gaussian(70, 6), overrides={"group": 8, "width": 2, "form_dim": 4}, constants={"FITTED_ROWS": 2}
    ),
    "contracted graph": Case(None, near_a_plane(30, 8), overrides={"form_dim": 4, "query_batch": 20}),
    "streamed": Case(*PROVED, overrides={"route": "streamed", "point_slab": 128}, host=True),
    "host_refine": Case(*LEVELS, overrides={"route": "host_refine", **TWO}, host=True),
    "host_refine, contracted": Case(
        near_a_plane(3), near_a_plane(140), overrides={"route": "host_refine", "form_dim": 4}, host=True
    ),
    "two devices": Case(*PROVED, overrides={"shard": "points", "devices": (DEVICE, DEVICE)}),
}
# Cases of the thin suite: each attempt once, on the data for which the interpreter is fastest.
THIN = {
    "gaussian",
    "one query beside copies",
    "k is n",
    "another metric",
    "every level",
    "tight far clusters",
    "copies",
    "bytes",
    "nearby after levels",
    "contracted",
    "streamed",
    "host_refine",
    "host_refine, contracted",
    "two devices",
}


# The choices of some searches while they run, and their attempts: rows, and the number of rows that each attempt
# proves.
RECORDS: dict[str, tuple[list[str], dict[str, tuple[int, int]]]] = {
    "gaussian": ([], {"float16": (3, 3)}),
    "every level": (
        [],
        {"float16": (3, 0), "level 1, float16": (3, 1), "level 2, split": (2, 1), "values": (1, 1)},
    ),
    "copies": ([], {"float16": (6, 0), "level 1, float16": (6, 3), "without copies": (3, 3)}),
    "copies first": (
        ["copies"],
        {"split": (34, 34), "copies, which have the answers of first ones": (146, 146)},
    ),
    "bytes": (["bytes"], {"int8": (9, 9)}),
    "bytes, of points alone": (["bytes"], {"float16": (9, 9)}),
    "nearby after levels": (
        [],
        {"float16": (4, 0), "level 1, float16": (4, 0), "nearby": (4, 0), "values": (4, 4)},
    ),
    "contracted": (["columns"], {"float16 in 4 dimensions": (3, 3)}),
    "streamed": ([], {"lists of 2 slabs of points, merged": (3, 3)}),
    "host_refine": (
        ["rows left"],
        {"float16, refined on the CPU": (3, 0), "float16 again, refined on the CPU": (3, 1), "float32": (2, 2)},
    ),
    "host_refine, contracted": ([], {"float16 in 4 dimensions, refined on the CPU": (3, 3)}),
    "two devices": (["devices"], {"lists of 2 devices, merged": (3, 3)}),
}


def run(case: Case, *, every: bool = False) -> tuple[dict[str, Any], Record]:
    """Search, check the answers, and return the levels of the report, the steps, and the record."""
    with pytest.MonkeyPatch.context() as patched:
        for name, value in case.constants.items():
            patched.setattr(tuning, name, value)
        graph = case.queries is None
        rows = case.points if graph else case.queries
        queries, points = (rows, case.points) if case.host else tensors(DEVICE, rows, case.points)
        queries = points if graph else queries
        overrides = {"devices": (DEVICE,), **case.overrides}
        plan = plan_of(queries, points, case.k, case.metric, self_join=graph, **overrides)
        plan = dataclasses.replace(plan, **case.changes)
        reports: list[Report] = []
        patched.setattr(dispatch, "synchronize", lambda devices: None)
        patched.setattr(dispatch.logger, "isEnabledFor", lambda level: True)
        patched.setattr(
            dispatch.logger, "info", lambda _, *given: reports.extend(one for one in given if isinstance(one, Report))
        )
        with steps(every=every) as taken, recording("search", len(rows)) as record:
            found = dispatch.search_once(queries, points, plan, self_join=graph, progress=False)
    assert record.proved == record.rows, record
    own = np.arange(len(case.points)) if graph else None
    assert_same_neighbors(
        on_host(found), brute(rows, case.points, case.k, case.metric, self_ids=own), metric=case.metric
    )
    levels = reports[-1].rows_by_precision
    return {"levels": levels, "steps": taken if every else in_short(taken)}, record


@pytest.mark.parametrize("name", [pytest.param(name, marks=() if name in THIN else pytest.mark.full) for name in CASES])
def test_attempts(name: str) -> None:
    (found, record), expected = run(CASES[name]), json.loads(EXPECTED.read_text())[name]
    assert list(found["levels"].items()) == list(expected["levels"].items())
    assert found["steps"] == expected["steps"]
    if name in RECORDS:
        attempts = {attempt.name: (attempt.rows, attempt.proved) for attempt in record.attempts}
        assert ([choice.what for choice in record.choices], attempts) == RECORDS[name]


def test_every_case_is_expected() -> None:
    assert set(json.loads(EXPECTED.read_text())) == set(CASES)


if __name__ == "__main__":
    import tests.conftest  # noqa: F401 - hastens the interpreter

    EXPECTED.write_text(json.dumps({name: run(case)[0] for name, case in CASES.items()}, indent=1) + "\n")
