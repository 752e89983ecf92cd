"""tang2015, table I: the time of a search for distances, for the selection, and for copying distances to the host.

As in the paper: 2^13 queries of 2^15 points, 128 numbers in [0, 1) each, k = 2^8 and 2^10. A CPU gets fewer queries.

    distances      (m, n), one matrix product of float32
    queue          the paper's queues with buffer and partition, over these distances
    copy           the distances, from the device to pinned host memory                       CUDA only
    host           a heap on all cores of the host, over the copied distances                 CUDA only
    whole          distances, then the aligned merge queue
    search         tonari.search of the same points and queries: nothing is written between the two steps

The paper uses the heap of the C++ standard library on 16 cores; here it is tonari's heap queue.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

from ...harness.case import Case
from ...harness.device import Timing, open_device, take_turns
from ...harness.peers.cuda import float32_products
from ...harness.proof import neighbors
from ...harness.proof.selection import PROOF, Proof
from ...harness.run import Run, say, seconds_of
from ...suites.select.measure import call_of, columns
from .selection import BOTH, QUEUES, N, Q

KS = (2**8, 2**10)
D = 128
BEST = "merge"
QUERIES = {"cuda": Q, "cpu": 2**11}
SECONDS = 0.5


def cases() -> Iterator[Case]:
    """Return a case for the CPU and a case for CUDA."""
    for device, queries in QUERIES.items():
        yield Case("share", device, N, queries, D, max(KS), compare, data="uniform", cost=60.0)


def distances_of(queries: Any, points: Any) -> Any:
    """Return the Euclidean distances (m, n) of float32 rows, by one product."""
    import torch

    with float32_products("highest"):
        scores = torch.addmm((points * points).sum(dim=1), queries, points.T, alpha=-2)
    scores += (queries * queries).sum(dim=1, keepdim=True)
    return scores.clamp_(min=0).sqrt_()


def compare(run: Run, case: Case) -> None:
    """Verify and time every part of a search, for each k."""
    import torch

    generator = torch.Generator(run.where).manual_seed(0)
    points, queries = (torch.rand((rows, case.d), generator=generator, device=run.where) for rows in (case.n, case.m))
    matrix = distances_of(queries, points)
    timing = timed(run, lambda: distances_of(queries, points))
    run.write(case, [part("distances", timing) | {"who": "torch float32", "k": None}])
    host = None
    if run.cuda:
        host = torch.empty(matrix.shape, dtype=matrix.dtype, pin_memory=True)
        timing = timed(run, lambda: host.copy_(matrix, non_blocking=True))
        run.write(case, [part("copy", timing) | {"who": "torch", "k": None}])
    proof, truth = Proof(matrix, case.k), run.proof(queries, points, case.k, graph=False)
    for k in dict.fromkeys(min(k, case.k) for k in KS):
        selections(run, case, proof.narrowed(k), host)
        whole(run, case, queries, points, proof.narrowed(k), truth)


def selections(run: Run, case: Case, proof: Proof, host: Any) -> None:
    """Time the queues on the device and, on CUDA, the host's heap on copied distances."""
    for name, (method, options) in QUEUES.items():
        say(f"{name}, k = {proof.k}")
        call = call_of(run, proof.tensor, proof.k, method, options | BOTH, "last")
        proved = proof.check(call())
        run.write(case, [of_ours(proof, name, method, options | BOTH, timed(run, call), proved)])
    if host is None:
        return
    cores = len(os.sched_getaffinity(0))
    options = {"buffer": "full", "threads": cores}

    def call() -> Any:
        return run.tonari.select_k(host.numpy(), proof.k, method="heap", nan="last", **options)

    proved = proof.check(call())
    timing = take_turns(open_device("cpu", cores), {"host": call}, seconds=SECONDS, most=run.repeats)["host"]
    run.write(case, [of_ours(proof, "host", "heap", options, timing, proved)])


def whole(run: Run, case: Case, queries: Any, points: Any, proof: Proof, truth: Any) -> None:
    """Time, alternately, distances followed by a queue, and tonari's search, which stores no distances."""
    k, (method, options) = proof.k, QUEUES[BEST]

    def in_two_steps() -> Any:
        return call_of(run, distances_of(queries, points), k, method, options | BOTH, "last")()

    def search() -> Any:
        return run.tonari.search(queries, points, k, method="exact", **run.options())

    proved = proof.check(in_two_steps())
    certain = truth.check(neighbors.as_answer(search(), run.where), k)
    calls = {"whole": in_two_steps, "search": search}
    timings = take_turns(run.device, calls, seconds=SECONDS, most=run.repeats, settle=True)
    ours = part("search", timings["search"]) | {"who": "tonari", "k": k, "proof": neighbors.PROOF, "proved": certain}
    run.write(case, [of_ours(proof, "whole", method, options | BOTH, timings["whole"], proved), ours])


def timed(run: Run, call: Callable[[], Any]) -> Timing:
    """Run a call once to warm it up, then return its timing."""
    call()
    return take_turns(run.device, {"": call}, seconds=SECONDS, most=run.repeats)[""]


def part(name: str, timing: Timing) -> dict[str, Any]:
    """Return the columns of results about one part of a search."""
    return seconds_of(timing) | {"extras": {"series": name}}


def of_ours(
    proof: Proof, name: str, method: str, options: dict[str, Any], timing: Timing, proved: int
) -> dict[str, Any]:
    """Return the columns of results about a selection by tonari."""
    shape = columns(proof, method, options, data="uniform")
    return shape | {"proof": PROOF, "proved": proved} | part(name, timing)
