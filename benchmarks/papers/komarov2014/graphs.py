"""komarov2014, algorithm 1: whole k-NN graphs by float32 products and quick multi-select, compared with exact graphs.

For each batch of rows:

    euclidean      sqrt(|x|² + |y|² - 2 x·y)
    cosine         1 - x·y       of rows of length 1
    correlation    1 - x·y       of rows of mean 0 and length 1
    selection      quick multi-select over each row, in which the point itself is at infinity

Our copy of the paper has neither sizes nor times of whole graphs, so n, d and k are ours, and the rows are normally
distributed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...harness.case import Case
from ...harness.datasets import hard
from ...harness.device import take_turns
from ...harness.peers.cuda import float32_products, products
from ...harness.proof import check_rows, neighbors
from ...harness.run import Run, say, seconds_of
from ...suites.select.measure import over, size
from .selection import SIZES_K

METRICS = ("euclidean", "cosine", "correlation")
SIZES_N = {"cuda": tuple(2**i for i in range(13, 17)), "cpu": tuple(2**i for i in range(11, 14))}
D = 128
WHO = "products and quick"
# Maximum number of distances in memory at once.
BATCH_VALUES = 2**28
SECONDS = 0.5


def cases() -> Iterator[Case]:
    """Return a case for each metric and device; each case builds graphs for all n and k."""
    for device in ("cpu", "cuda"):
        for metric in METRICS:
            yield Case(f"graph-{metric}", device, 0, 0, D, 0, compare, metric=metric, graph=True, cost=60.0)


def as_in_the_paper(select_k: Any, points: Any, k: int, metric: str, **options: Any) -> tuple[Any, Any]:
    """Return the k nearest other points of every point of a float32 tensor (n, d).

    Returns tensors of distances and indices, both (n, k).
    """
    import torch

    rows = points
    if metric == "correlation":
        rows = rows - rows.mean(dim=1, keepdim=True)
    if metric != "euclidean":
        rows = torch.nn.functional.normalize(rows)
    squares = (rows * rows).sum(dim=1)
    step = max(1, BATCH_VALUES // len(rows))
    found: list[tuple[Any, Any]] = []
    for start in range(0, len(rows), step):
        batch = rows[start : start + step]
        with float32_products("highest"):
            scores = products(batch, rows)
        if metric == "euclidean":
            scores.mul_(-2).add_(squares).add_(squares[start : start + step, None]).clamp_(min=0).sqrt_()
        else:
            scores.neg_().add_(1)
        scores.diagonal(start).fill_(torch.inf)
        found.append(tuple(select_k(scores, k, method="quick", nan="last", **options)))
    distances, indices = (torch.cat(parts) for parts in zip(*found, strict=True))
    return distances, indices


def compare(run: Run, case: Case) -> None:
    """Time our graph and the paper's alternately, for every n and k."""
    for wanted in SIZES_N[run.device.kind]:
        n = size(run, 1, wanted)[1]
        points = hard.make(case.data, n, 0, case.d, run.where).points
        for k in SIZES_K:
            if k >= n:
                continue
            if over(run):
                run.write(case, [{"who": "tonari", "note": "not reached: this shape and those after it"}])
                return
            say(f"{case.metric}: {n} points, k = {k}")
            run.write(case, measure(run, case.metric, points, k))


def measure(run: Run, metric: str, points: Any, k: int) -> list[dict[str, Any]]:
    """Verify tonari's graph, compare the paper's graph with it, and time both."""
    from tonari.metrics import reference

    tonari = run.tonari
    threads = {} if run.threads is None else {"threads": run.threads}
    calls = {
        "tonari": lambda: tonari.knn_graph(points, k, metric=metric, method="exact", **run.options()),
        WHO: lambda: as_in_the_paper(tonari.select_k, points, k, metric, **threads),
    }
    host = points.cpu().numpy()
    ours = neighbors.Answer(*(part.cpu().numpy() for part in neighbors.as_answer(calls["tonari"](), run.where)))
    check_rows(*ours, len(host), len(host), k, graph=True)
    proved = neighbors.check_reference(reference, ours, host, host, k, metric, graph=True)
    theirs = tuple(part.cpu().numpy() for part in calls[WHO]())
    recall = neighbors.agreement(ours, theirs, host, host, metric)
    timings = take_turns(run.device, calls, seconds=SECONDS, most=run.repeats, settle=True)
    shape = {"n": len(host), "m": len(host), "k": k}
    mine = timings["tonari"]
    return [
        shape | {"who": "tonari", "proof": neighbors.PROOF, "proved": proved, "recall": 1.0} | seconds_of(mine),
        shape
        | {"who": WHO, "recall": recall, "ratio": timings[WHO].median / mine.median, "parameters": {"method": "quick"}}
        | seconds_of(timings[WHO]),
    ]
