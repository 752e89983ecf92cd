"""Precision levels of a search release the copies that they pack, also if an error or an early end stops them.

Without a GPU, Triton's interpreter runs the kernels on the CPU.
"""

from __future__ import annotations

import functools
from types import SimpleNamespace
from typing import Any

import pytest

from tests.helpers.devices import HAS_TORCH, needs_torch
from tests.helpers.gpu_checks import DEVICE, clusters_for_each_precision, plan_of, tensors

pytestmark = [needs_torch]
if HAS_TORCH:
    import torch

    from tonari.exact.cuda.attempts.contracted import prepare_points
    from tonari.exact.cuda.attempts.first import DevicePoints, Search
    from tonari.exact.cuda.attempts.ladder import search_on_device
    from tonari.exact.cuda.attempts.retries.levels import AtLevel, levels_of
    from tonari.exact.report import Report

ALL = {"precisions": ("float16", "split", "values"), "devices": (DEVICE,), "group": 8, "width": 1}


@pytest.mark.usefixtures("attempts")
@pytest.mark.parametrize("last", ["float16", "split"])
def test_copies_of_retries_are_given_back(last: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Copies are also released if the last retry leaves no row, or few rows."""
    queries, points = clusters_for_each_precision()
    few = Search.are_few
    packed: list[str] = []

    def are_few(search: Any, rows: int) -> bool:
        return few(search, rows) or last in packed

    def batch(search: Any, queries: Any, own: Any, precision: str, *given: Any) -> Any:
        packed.append(precision)
        return one(search, queries, own, precision, *given)

    one = Search.batch
    monkeypatch.setattr(Search, "are_few", are_few)
    monkeypatch.setattr(Search, "batch", batch)
    q, p = tensors(DEVICE, queries, points)
    plan = plan_of(queries, points, 3, **ALL)
    prepared = DevicePoints(p, plan.metric, plan.precisions[0])
    search_on_device(q, prepared, plan)
    assert packed[-1] == last
    assert {precision for precision, _ in prepared.copies._made} == {"float16"}


@pytest.mark.parametrize("begun", [0, 1, 2, 3, 4])
def test_levels_of_contracted_rows_give_back_what_they_pack(begun: int) -> None:
    """However many levels are tried."""
    points = clusters_for_each_precision()[1]
    q, p = tensors(DEVICE, points[::200], points)
    plan = plan_of(q, p, 3, **ALL, form_dim=3)
    prepared = prepare_points(p, plan)
    search = prepared.begin(q, plan)
    with levels_of(search) as levels:
        assert [level.name for level in levels] == [
            "float16 in 3 dimensions",
            "split in 3 dimensions",
            "split in 3 dimensions",
            "float16",
            "split",
        ]
        for level in levels[: begun + 1]:
            level.begin()(q, None)
    kept = prepared.copies._made, {} if search._rest is None else search._rest.prepared.copies._made
    assert [{precision for precision, _ in copies} for copies in kept] == [{"float16"}, set()]


@pytest.mark.parametrize(("left", "searched"), [(1, 512), (100, 512), (512, 512), (700, 700)])
def test_few_rows_of_a_long_search_are_retried_by_kernels_that_exist(left: int, searched: int) -> None:
    """As many rows as in the rehearsal: fewer would need other kernels, which take seconds to compile."""
    again: list[Any] = []
    rows = torch.arange(left) * 7
    for m, level, expected in ((10**6, 0, searched), (10**4, 0, left), (10**6, 1, left)):
        search = SimpleNamespace(queries=range(m), least_fitted=10**5, levels=lambda: [SimpleNamespace(end=list)] * 2)
        search.filled = functools.partial(Search.filled, search)
        retried = SimpleNamespace(
            search=search,
            again=lambda given, way: again.append(given),
            proved=torch.ones(left * 7, dtype=torch.uint8),
            report=Report(rows=m),
        )
        AtLevel(level, "float16").run(retried, rows)
        assert len(again[-1]) == expected
        assert again[-1].unique().tolist() == rows.tolist()
        assert retried.report.certified == left
