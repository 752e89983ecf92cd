"""Points in host memory whose contracted rows are on the device, compared with a search of these rows alone.

On this route, the device searches the contracted rows, float32 in p columns, and the CPU refines the candidates. The
bar is on the time of the route divided by the time of the device's part alone. Both searches have prepared points; the
preparation of the points in host memory has a separate row.
"""

from __future__ import annotations

import os
from typing import Any

from ...harness.case import Case
from ...harness.datasets.hard import DeviceData, make_halves
from ...harness.memory import Peak
from ...harness.proof.neighbors import PROOF, as_answer
from ...harness.run import Run, seconds_of
from .contracted import plan_of
from .reports import levels_of, reports

FORM_DIM = 64
PROVED = 16  # number of queries whose answers are compared with all points in float64
MEMORY_SHARE = 0.9  # maximum share of the host's memory that the points may take
OF_RESIDENT = "of a resident search of f"


def contracted_host(run: Run, case: Case) -> None:
    """Verify and time the search of points in host memory.

    Then time the search of their contracted rows alone.
    """
    from tonari import inputs
    from tonari.exact.cuda import dispatch
    from tonari.exact.cuda.planning import plan_on_cuda
    from tonari.exact.cuda.rows.contraction import contract
    from tonari.exact.cuda.rows.pack import new_flags
    from tonari.metrics.problem import make_problem

    needed, there = 2 * case.n * case.d, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if needed > MEMORY_SHARE * there:
        run.write(case, [{"who": "tonari", "note": f"needs {needed} bytes of host memory, of {there}"}])
        return
    shape = (case.data, case.n, case.queries, case.d)
    data: DeviceData = run.keep(("halves", *shape), lambda: make_halves(*shape, run.where))
    points, queries = (inputs.held(part) for part in data)
    problem = make_problem(
        case.n, case.m, case.d, case.k, dtype="float16", query_dtype="float16", metric=case.metric, devices=(run.where,)
    )
    plan = plan_on_cuda(problem, route="host_refine", form_dim=min(FORM_DIM, case.d // 2))
    made: list[Any] = []
    peak = Peak(run.where)
    seconds = run.time_once(lambda: made.append(dispatch.prepare(points, plan, False)))
    facts: dict[str, Any] = {"seconds_median": seconds, "seconds_min": seconds, "seconds_max": seconds, "repeats": 1}
    facts["extras"] = {"gbps": data.points.nbytes / seconds / 1e9}
    run.write(case, [{"who": "tonari, prepare"} | facts])

    def call() -> Any:
        return dispatch.search(queries, made[0], plan, progress=False)

    with reports() as seen:
        found = as_answer(call(), run.where)
    taken = peak.bytes()
    proof = run.also(("truth", case.k), lambda: run.proof(data.queries, data.points, case.k, graph=False, count=PROVED))
    proved = run.prove(lambda: proof.check(found, case.k))
    run.free()
    timing = run.time(call)
    ours = {"who": "tonari", "proof": PROOF, "proved": proved, "recall": 1.0, "peak_bytes": taken} | seconds_of(timing)
    ours["extras"] = {"levels": levels_of(seen), "refined": seen[0].refined / case.m, "planned": plan.total_bytes}

    rows = made[0].rows.values
    asked = contract(data.queries.to(run.where), made[0].by, new_flags(run.where)).values
    made.clear()
    run.free()
    alone = plan_of(run, case.resized(d=rows.shape[1], metric="sqeuclidean"), rows, asked, "full")
    prepared = dispatch.prepare(rows, alone, False)

    def call_alone() -> Any:
        return dispatch.search(asked, prepared, alone, progress=False)

    with reports() as seen:
        call_alone()
    theirs = run.time(call_alone)
    measured = {OF_RESIDENT: timing.median / theirs.median}
    run.write(case, [ours | verdict for verdict in run.verdicts(case.bars, measured)])
    facts = {"who": "tonari, resident search of f", "ratio": theirs.median / timing.median}
    run.write(case, [facts | {"extras": {"levels": levels_of(seen)}} | seconds_of(theirs)])
