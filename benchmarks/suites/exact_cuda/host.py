"""Searches among points in host memory, searches on several GPUs, and comparisons of answers with the CPU's bits."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...harness.case import Case
from ...harness.datasets.hard import DeviceData, make
from ...harness.memory import Peak
from ...harness.proof import WrongAnswer
from ...harness.proof.neighbors import PROOF, as_answer, same
from ...harness.run import Run, seconds_of
from .reports import levels_of, reports
from .search import ours, proof_of, proved_and_timed

BUDGET = "6GB"
BUDGET_BYTES = 6 * 10**9
# Memory limit for the cases that compare routes: their points fit on the device, but not together with a packed copy.
TIGHT = "3GB"
# Divisors of the number of queries in these cases, so that each route is timed on many and on few queries.
SHARES = (1, 16, 256, 4096)
BETTER = "over the better route"
BITS_ROWS = 512
BITS_DTYPES = ("float32", "uint8", "float64", "float16")


def load(run: Run, case: Case) -> DeviceData:
    """Return the points and queries of a case in host memory; successive cases share them."""
    shape = (case.data, case.n, case.queries, case.d)
    found: DeviceData = run.keep(("host", *shape), lambda: make(*shape, run.where, host=True))
    return found


def streamed(run: Run, case: Case) -> None:
    """Time a search that streams slabs of points within a budget; compare it with resident points and with PCIe."""
    data = load(run, case)
    proof = proof_of(run, case, data)
    held = ours(run, case, DeviceData(data.points.to(run.where), data.queries.to(run.where)), proof)
    run.free()
    feed = data.points.nbytes / run.ceilings.pcie()

    def call() -> Any:
        return run.tonari.search(data.queries, data.points, case.k, device=run.where, memory=BUDGET, progress=False)

    peak = Peak(run.where)
    timing, facts = proved_and_timed(run, case, [call], proof)
    taken = peak.bytes()
    measured = {"of resident or PCIe": max(held, feed) / timing.median}
    if taken is not None:
        measured["device bytes"] = taken
    facts |= {
        "who": f"tonari, {BUDGET} of the device",
        "peak_bytes": taken,
        "note": f"resident {held:.4g} s, PCIe {feed:.4g} s",
    }
    facts["extras"] |= {
        "pcie_gbps": run.ceilings.pcie() / 1e9,
        "gbps": data.points.nbytes / timing.median / 1e9,
    }
    run.write(case, [facts | verdict for verdict in run.verdicts(case.bars, measured)])


def routes(run: Run, case: Case) -> None:
    """Time each route for points in host memory, and the route that the plan chooses, for many and for few queries.

    The route "host_refine" divides the work as matsumoto2015 does: the GPU screens packed rows, the CPU refines
    candidates.
    """
    data = load(run, case)
    proof = proof_of(run, case, data)
    proved: Any = None
    for share in SHARES:
        one = case.resized(m=max(1, case.m // share))
        seconds: dict[str, float] = {}
        for route in ("streamed", "host_refine", None):
            asked = {} if route is None else {"route": route}
            given = {"method": "exact", "device": run.where, "memory": TIGHT} | asked
            plan = run.tonari.plan(one.n, one.m, one.d, one.k, **given)

            def call(plan: Any = plan, rows: int = one.m) -> Any:
                return run.tonari.search(
                    data.queries[:rows], data.points, case.k, plan=plan, device=run.where, progress=False
                )

            found = as_answer(call(), run.where)
            if proved is None:
                run.prove(lambda found=found: proof.check(found, case.k))
                proved = found
            same(found, proved, plan.route)
            timing = run.time(call)
            seconds[route or ""] = timing.median
            facts = {"who": f"tonari {route or 'auto'}", "stage": "one call", "proof": PROOF, "proved": one.m}
            facts |= seconds_of(timing) | {"extras": {"route": plan.route}}
            better = min(seconds.values())
            verdicts = [{}] if route else run.verdicts(case.bars, {BETTER: timing.median / better})
            run.write(one, [facts | verdict for verdict in verdicts])


def several(run: Run, case: Case) -> None:
    """Time a graph or a search on one GPU and on all GPUs of the case."""
    data = load(run, case)
    proof = proof_of(run, case, data)
    alone = 0.0
    for gpus in (1, case.gpus):
        devices = [f"cuda:{i}" for i in range(gpus)]

        def call(devices: list[str] = devices) -> Any:
            options = {"device": devices, "progress": False}
            if case.graph:
                return run.tonari.knn_graph(data.points, case.k, **options)
            return run.tonari.search(data.queries, data.points, case.k, **options)

        timing, facts = proved_and_timed(run, case, [call], proof)
        alone = alone or timing.median
        facts |= {"who": f"tonari, {gpus} GPU{'s' if gpus > 1 else ''}", "gpus": gpus}
        measured = {"speed-up": alone / timing.median} if gpus > 1 else {}
        run.write(case, [facts | verdict for verdict in run.verdicts(case.bars, measured)])


def bits(run: Run, case: Case) -> None:
    """Compare the CPU's answers with the GPU's bit for bit: every metric, and every dtype of Euclidean rows."""
    from tonari.metrics import METRICS

    for metric in METRICS:
        for dtype in BITS_DTYPES if metric == "euclidean" else BITS_DTYPES[:1]:

            def work(metric: str = metric, dtype: str = dtype) -> None:
                same_bits(run, case, metric, dtype)

            run.guarded(case, f"tonari {metric} {dtype}", work)


def same_bits(run: Run, case: Case, metric: str, dtype: str) -> None:
    """Raise WrongAnswer unless CPU and GPU return the same bits for a metric and dtype."""
    import torch

    rng = np.random.default_rng(0)
    raw = rng.standard_normal((case.n + case.m, case.d), dtype=np.float32)
    raw[: case.m] = raw[case.m : 2 * case.m]  # whole numbers, which cause ties
    if metric == "chi2":
        raw = np.abs(raw)
    rows = (raw * 40 + 128).clip(0, 255).astype(dtype) if dtype == "uint8" else raw.astype(dtype)
    points, queries = rows[: case.n], rows[case.n :]
    expected = run.tonari.search(queries, points, case.k, metric=metric, device="cpu", progress=False)
    here = [torch.from_numpy(part).to(run.where) for part in (queries, points)]

    def call() -> Any:
        return run.tonari.search(*here, case.k, metric=metric, progress=False)

    with reports() as seen:
        found = call()

    def check() -> int:
        for name, ours_, theirs in zip(("distances", "indices"), found, expected, strict=True):
            wrong = (ours_.cpu().numpy() != theirs).any(axis=1)
            if wrong.any():
                row = int(np.argmax(wrong))
                raise WrongAnswer(f"{name} of row {row} are not the CPU's; {int(wrong.sum())} rows differ")
        return len(queries)

    proved = run.prove(check)
    facts = {"who": f"tonari {metric}", "metric": metric, "dtype": dtype, "proof": "bits of the CPU", "proved": proved}
    run.write(case, [facts | {"extras": {"levels": levels_of(seen)}} | seconds_of(run.time(call))])
