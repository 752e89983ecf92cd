"""Searches that screen all columns, fewer columns, or as many as a pilot chooses, timed side by side.

Graphs take long, so they are built only in all columns and by the pilot. All searches must return the same bits as the
search in all columns; for rows of bytes, as a search in float16. The bars are on the time with the pilot's choice. In a
``prepared`` case, the points are prepared before the clock starts. The preparation then has a separate row, and so has
an Index that chooses its number of columns after some searches; the bars are on the time of this Index.
"""

from __future__ import annotations

import time
from typing import Any

from ...harness.case import Case
from ...harness.proof import WrongAnswer
from ...harness.run import Run, seconds_of
from .reports import levels_of, reports
from .search import load

FORM_DIMS = ("full", 32, 64, 128, 256, "pilot")
OF_GRAPHS = ("full", "pilot")
FLOAT16 = "float16"
NAMES = {"pilot": "tonari, chosen", FLOAT16: "tonari, float16"}
OF_BYTES = ("patches",)
PROOF = "bits of all dimensions"
INDEX = "tonari Index"
LONGEST = 20.0


def contracted(run: Run, case: Case) -> None:
    """Time a search for each number of screened columns, of which the first is that of all columns."""
    from tonari.exact.cuda import dispatch

    data = load(run, case)
    queries = data.points if case.graph else data.queries
    truth: list[Any] = []
    whole = 0.0
    before = (FLOAT16,) if case.data in OF_BYTES else ()
    for form_dim in (*before, *(OF_GRAPHS if case.graph else FORM_DIMS)):
        if isinstance(form_dim, int) and 2 * form_dim > case.d:
            continue
        name = NAMES.get(str(form_dim), f"tonari, form_dim {form_dim}")
        plan = plan_of(run, case, data.points, queries, form_dim)
        prepared = None
        if case.prepared:
            timing = run.time(lambda plan=plan: dispatch.prepare(data.points, plan, False))
            run.write(case, [{"who": f"{name}, prepare", **seconds_of(timing)}])
            prepared = dispatch.prepare(data.points, plan, False)

        def call(plan: Any = plan, prepared: Any = prepared) -> Any:
            options: dict[str, Any] = {"self_join": case.graph, "progress": False}
            if prepared is None:
                return dispatch.search_once(queries, data.points, plan, **options)
            return dispatch.search(queries, prepared, plan, **options)

        with reports() as seen:
            found = call()
        truth = truth or list(found)
        check(found, truth)
        del found
        timing = run.time(call)
        whole = timing.median if form_dim in (*before, "full") else whole
        facts = {"who": name, "metric": case.metric, "proof": PROOF, "proved": case.m, "recall": 1.0}
        facts |= {"ratio": timing.median / whole, "extras": {"levels": levels_of(seen)}} | seconds_of(timing)
        judged = form_dim == "pilot" and not case.prepared
        measured = {"seconds": timing.median, "of full": timing.median / whole} if judged else {}
        run.write(case, [facts | verdict for verdict in run.verdicts(case.bars, measured)])
        del call, prepared
        run.free()
    if case.prepared:
        run.guarded(case, INDEX, lambda: living(run, case, data.points, queries, truth, whole))


def living(run: Run, case: Case, points: Any, queries: Any, truth: list[Any], whole: float) -> None:
    """Time an Index once it has contracted its points, which it does after some searches (at most LONGEST seconds)."""
    index = run.tonari.Index(points, metric=case.metric, method="exact", progress=False)

    def call() -> Any:
        return index.search(queries, case.k, progress=False)

    before, levels, end = 0, "", time.perf_counter() + LONGEST
    while not before or ("dimensions" not in levels and time.perf_counter() < end):
        with reports() as seen:
            found = call()
        before, levels = before + 1, str(levels_of(seen))
    check(found, truth)
    timing = run.time(call)
    facts = {"who": INDEX, "metric": case.metric, "proof": PROOF, "proved": case.m, "recall": 1.0}
    facts |= {"ratio": timing.median / whole, "extras": {"levels": levels, "searches_before": before}}
    measured = {"seconds": timing.median, "of full": timing.median / whole}
    run.write(case, [facts | seconds_of(timing) | verdict for verdict in run.verdicts(case.bars, measured)])


def plan_of(run: Run, case: Case, points: Any, queries: Any, form_dim: int | str) -> Any:
    """Return the plan of a case whose rows are on the device, with `form_dim` screened columns."""
    from tonari import inputs
    from tonari.exact.cuda.planning import plan_on_cuda
    from tonari.metrics.problem import make_problem

    problem = make_problem(
        len(points),
        len(queries),
        case.d,
        case.k,
        dtype=inputs.name_of_dtype(points),
        metric=case.metric,
        self_join=case.graph,
        devices=(run.where,),
        host_points=False,
        host_queries=False,
    )
    if form_dim == FLOAT16:
        return plan_on_cuda(problem, form_dim="full", precisions=(FLOAT16, "split", "values"))
    return plan_on_cuda(problem, form_dim=form_dim)


def check(found: Any, truth: Any) -> None:
    """Raise WrongAnswer unless an answer has the same bits as the expected answer."""
    import torch

    for name, ours, theirs in zip(("distances", "indices"), found, truth, strict=True):
        if not torch.equal(ours, theirs):
            rows = int((ours != theirs).any(dim=1).sum())
            raise WrongAnswer(f"{name} of {rows} rows are not those of a search in all dimensions")
