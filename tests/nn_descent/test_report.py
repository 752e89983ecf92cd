"""Reports of a run."""

from __future__ import annotations

import json
from typing import Any

from tests.helpers import checks, plans
from tonari.core.results.neighbors import Neighbors
from tonari.nn_descent.driver import build
from tonari.nn_descent.plan import DescentPlan
from tonari.nn_descent.reference import ReferenceBackend
from tonari.nn_descent.report import DescentReport, RoundReport


def planned(points: Any, k: int, **asked: Any) -> DescentPlan:
    n, d = points.shape
    return plans.descent(n, d, k, dtype=points.dtype, **{"metric": "euclidean", "threads": 1} | asked)


def built(points: Any, k: int, progress: Any = None, **asked: Any) -> tuple[Neighbors, DescentReport, Any]:
    """Return an answer, its report, and the steps."""
    plan = planned(points, k, **asked)
    steps = ReferenceBackend(points, plan)
    return *build(steps, plan, progress), steps


POINTS = checks.gaussian(600, 4)


def test_a_report_goes_through_json() -> None:
    _, report, _ = built(POINTS, 10, recall=0.9, start="random")
    again = DescentReport.from_dict(json.loads(json.dumps(report.as_dict())))
    assert again == report
    assert isinstance(again.rounds[0], RoundReport)
    assert str(report).startswith(f"recall {report.estimate.by_distance:.5g} (")
    assert f"of 0.9 reached in {len(report.rounds)} round" in str(report)
