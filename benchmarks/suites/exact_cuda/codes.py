"""Searches of 8-bit integers in host memory, by codes on the device, and by certex; integer sums verify the answers."""

from __future__ import annotations

import os
import time
from typing import Any

import numpy as np

from ...harness.case import Case
from ...harness.datasets.synthesized import Synthesized
from ...harness.peers.cuda import HOST_PEERS
from ...harness.proof.neighbors import Answer, as_answer, sample_rows
from ...harness.proof.rows import WrongAnswer, check_rows
from ...harness.run import Run, say, seconds_of
from .reports import levels_of, reports

PROVED = 200
BATCH = 2048
STEP = 1 << 20  # number of rows in a block that is made or compared in one step
MEMORY_SHARE = 0.85  # maximum share of the host's memory that the points may take
RATE = "queries/s"
RATE_AT_ONCE = "queries/s in one call"
DEVICE_BYTES = "device bytes"


def codes(run: Run, case: Case) -> None:
    """Verify a search by codes, and time it from and to host memory: in batches of 2,048 queries, and in one call."""
    needed, there = case.n * case.d, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if needed > MEMORY_SHARE * there:
        run.write(case, [{"who": "tonari", "note": f"needs {needed} bytes of host memory, of {there}"}])
        return
    points, queries = run.keep((case.data, case.n, case.m, case.d), lambda: made(case, run.where))
    run.free()
    devices = [f"cuda:{i}" for i in range(case.gpus)]
    before = in_use(devices)
    index: list[Any] = []
    seconds = run.time_once(lambda: index.append(run.tonari.Index(points, device=devices, codes="int8")))
    once = {"seconds_median": seconds, "seconds_min": seconds, "seconds_max": seconds, "repeats": 1}
    run.write(case, [{"who": "tonari, prepare", "gpus": case.gpus, "extras": {"gbps": needed / seconds / 1e9}} | once])

    def call(part: Any = queries) -> Any:
        return index[0].search(part, case.k, progress=False)

    began = time.perf_counter()
    with reports() as seen:
        call(queries[:BATCH])
    first = time.perf_counter() - began
    found = as_answer(call(), run.where)
    peak = in_use(devices) - before  # read here, since the truth takes gigabytes of its own
    truth = run.also(("truth", case.k), lambda: WholeTruth(queries, points, case.k, run.where))
    proved = run.prove(lambda: truth.check(found))
    batches = [queries[begin : begin + BATCH] for begin in range(0, case.m, BATCH)]
    timings = [run.time(lambda batch=batch: call(batch)) for batch in batches]
    batch = sorted(timings, key=lambda timing: timing.median)[len(timings) // 2]
    at_once = run.time(call)
    facts = {"who": "tonari", "stage": "one batch", "m": len(batches[0]), "gpus": case.gpus, "proved": proved}
    facts |= {"proof": "whole numbers", "recall": 1.0, "peak_bytes": peak} | seconds_of(batch)
    facts["extras"] = {"levels": levels_of(seen), "first search": first}
    rates = {RATE: len(batches[0]) / batch.median, RATE_AT_ONCE: case.m / at_once.median}
    verdicts = run.verdicts(case.bars, rates | {DEVICE_BYTES: peak})
    run.write(case.resized(m=len(batches[0])), [facts | verdict for verdict in verdicts])
    facts = {"who": "tonari, one call", "gpus": case.gpus, "proved": proved} | seconds_of(at_once)
    run.write(case, [facts | {"extras": {RATE_AT_ONCE: rates[RATE_AT_ONCE]}}])
    del index[:]
    run.free()
    for name in case.peers:
        if run.wants(name):
            run.guarded(case, name, lambda name=name: rival(run, case, name, points, queries, truth, before))
            run.free()


def rival(run: Run, case: Case, name: str, points: Any, queries: Any, truth: WholeTruth, bytes_before: int) -> None:
    """Time a peer's preparation, its batches of 2,048 queries, and one call; measure its recall by distance."""
    peer = HOST_PEERS[name]
    missing = peer.missing()
    if missing:
        run.write(case, [{"who": name, "note": missing}])
        return
    kept: list[Any] = []
    seconds = run.time_once(lambda: kept.append(peer.prepare(points)))
    once = {"seconds_median": seconds, "seconds_min": seconds, "seconds_max": seconds, "repeats": 1}
    run.write(case, [{"who": f"{name}, prepare"} | once])
    distances = kept[0](queries, case.k)[0]
    peak = in_use([run.where]) - bytes_before
    facts = {"who": name, "recall": truth.recall(distances), "proved": len(truth.rows), "peak_bytes": peak}
    batches = [queries[begin : begin + BATCH] for begin in range(0, case.m, BATCH)]
    timings = [run.time(lambda batch=batch: kept[0](batch, case.k)) for batch in batches]
    batch = sorted(timings, key=lambda timing: timing.median)[len(timings) // 2]
    rate = {RATE: len(batches[0]) / batch.median}
    run.write(case.resized(m=len(batches[0])), [facts | {"stage": "one batch", "extras": rate} | seconds_of(batch)])
    at_once = run.time(lambda: kept[0](queries, case.k))
    rate = {RATE_AT_ONCE: case.m / at_once.median}
    run.write(case, [{"who": f"{name}, one call", "extras": rate} | seconds_of(at_once)])


def made(case: Case, where: str) -> tuple[Any, Any]:
    """Return points and queries of a case in host memory, as uint8 arrays."""
    law = Synthesized(case.n + case.m, case.d, where, whole=True)
    points = np.empty((case.n, case.d), np.uint8)
    for begin in range(0, case.n, STEP):
        points[begin : begin + STEP] = law.rows(begin, min(begin + STEP, case.n)).cpu().numpy()
        if begin % (64 * STEP) == 0:
            say(f"  {begin:,} rows made")
    return points, law.rows(case.n, case.n + case.m).cpu().numpy()


def in_use(devices: list[str]) -> int:
    """Return the device memory in use, in bytes, by all libraries; for several devices, the largest amount."""
    import torch

    free = [torch.cuda.mem_get_info(device) for device in devices]
    return max(total - here for here, total in free)


class WholeTruth:
    """The true neighbours of some queries among rows of bytes.

    A product of two rows and the squared length of a row are whole numbers below 2^24, since d is at most 128. So
    float32 products are exact in any order of their sums.
    """

    def __init__(self, queries: Any, points: Any, k: int, where: str) -> None:
        import torch

        self.shape, self.k = (len(queries), len(points)), k
        self.rows = sample_rows(len(queries), PROVED)
        asked = torch.from_numpy(queries[self.rows]).to(where).float()
        lengths = (asked * asked).sum(1)[:, None]
        kept = torch.empty((len(asked), 0), dtype=torch.int64, device=where)
        for begin in range(0, len(points), STEP):
            rows = torch.from_numpy(points[begin : begin + STEP]).to(where).float()
            squares = (lengths + (rows * rows).sum(1) - 2 * (asked @ rows.T)).long()
            numbers = torch.arange(begin, begin + len(rows), device=where)
            # ordered by distance, then by row number
            keys = torch.cat([kept, (squares << 32) + numbers], dim=1)
            kept = keys.topk(min(k, keys.shape[1]), dim=1, largest=False).values
        self.squares, self.indices = kept >> 32, kept & (2**32 - 1)

    def check(self, found: Answer) -> int:
        """Raise WrongAnswer unless all rows are in order and the compared rows are right.

        Return the number compared.
        """
        import torch

        check_rows(*found, *self.shape, self.k)
        chosen = torch.from_numpy(self.rows).to(found.indices.device)
        wrong = (found.indices[chosen] != self.indices).any(1)
        wrong |= (found.distances[chosen].double() != self.squares.double().sqrt().float().double()).any(1)
        if bool(wrong.any()):
            row = int(wrong.int().argmax())
            raise WrongAnswer(f"row {self.rows[row]} differs from sums of whole numbers; {int(wrong.sum())} rows do")
        return len(self.rows)

    def recall(self, squares: Any) -> float:
        """Return the share of entries whose squared distance is the true one; ties may be in any order."""
        import torch

        found = torch.from_numpy(squares[self.rows]).to(self.squares.device)
        return float((found.double() == self.squares.double()).double().mean())
