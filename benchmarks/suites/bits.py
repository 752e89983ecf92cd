"""Searches among rows of bits, compared with FAISS's IndexBinaryFlat.

The time is that of one call of `tonari.search`, from arrays to answer; the peer's time includes building its index.
Both run in this process, alternately. The answer is verified first: a sample of rows bit for bit against
``tonari.metrics.reference``, and for hamming all distances against the peer's, which are whole numbers.

On a GPU, the time is from tensors on the device to neighbours on the device. The bar of a case there is a tenth of the
recorded seconds of the same case on two cores of a Xeon (model 207).
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np

from ..harness.case import Bar, Case, Suite
from ..harness.contest import Contestant, Timed, race
from ..harness.proof import WrongAnswer
from ..harness.proof.neighbors import check_reference
from ..harness.run import Run, seconds_of

PEER = "faiss-binary"
Rows = Any


def data_of(run: Run, case: Case) -> tuple[Rows, Rows]:
    """Return points and queries, each with `case.d` random bytes."""

    def made() -> tuple[Rows, Rows]:
        rng = np.random.default_rng(0)
        points, queries = (rng.integers(0, 256, (rows, case.d), dtype=np.uint8) for rows in (case.n, case.m))
        return points, queries

    found: tuple[Rows, Rows] = run.keep((PEER, case.n, case.m, case.d), made)
    return found


def searched(run: Run, case: Case) -> tuple[Rows, Rows]:
    """Copy points and queries to the GPU, if the search runs there."""
    rows = data_of(run, case)
    if case.device == "cpu":
        return rows

    def moved() -> tuple[Rows, Rows]:
        import torch

        points, queries = (torch.from_numpy(part).to(run.where) for part in rows)
        return points, queries

    found: tuple[Rows, Rows] = run.also("on the device", moved)
    return found


def on_host(answer: Any) -> tuple[Rows, Rows]:
    """Return the distances and indices of an answer as NumPy arrays."""
    distances, indices = (part if isinstance(part, np.ndarray) else part.cpu().numpy() for part in answer)
    return distances, indices


def workload(run: Run, case: Case) -> Callable[[], Any]:
    """Return a function that runs a case once; comparisons of two versions time it."""
    points, queries = searched(run, case)
    return lambda: run.tonari.search(queries, points, case.k, metric=case.metric, **run.options())


class Turn:
    """A contestant of a case: the search by tonari, or by FAISS."""

    def __init__(self, run: Run, name: str, call: Callable[[], Any]) -> None:
        self.name = name
        self._run, self._call = run, call

    def run(self) -> Timed:
        """Run the search once; return its seconds and its answer."""
        answers: list[Any] = []
        seconds = self._run.device.once(lambda: answers.append(self._call()))
        return Timed(seconds, *on_host(answers[0]))


def faiss_search(run: Run, case: Case) -> Callable[[], Any]:
    """Return a call that searches a case with FAISS."""
    import faiss

    points, queries = data_of(run, case)

    def call() -> tuple[Rows, Rows]:
        faiss.omp_set_num_threads(run.threads or 1)
        index = faiss.IndexBinaryFlat(8 * case.d)
        index.add(points)
        distances, indices = index.search(queries, case.k)
        return distances, indices

    return call


def compare(run: Run, case: Case) -> None:
    """Verify a search, time tonari and the peer, and compare the speed-up with the required one."""
    from tonari.metrics import reference

    points, queries = data_of(run, case)
    ours = Turn(run, "tonari", workload(run, case))
    found = ours.run()
    proved = check_reference(reference, found, queries, points, case.k, case.metric, graph=False)
    racing: list[Contestant] = [ours]
    if PEER in case.peers and run.wants(PEER):
        if find_spec("faiss") is None:
            run.write(case, [{"who": PEER, "note": f"{PEER} skipped: module 'faiss' is not installed"}])
        else:
            racing.append(Turn(run, PEER, faiss_search(run, case)))
            if not np.array_equal(racing[-1].run().distances, found.distances):
                raise WrongAnswer(f"distances differ from those of {PEER}")
    timings = race(racing, run.repeats)
    mine = timings.pop(ours.name)
    measured = {name: timing.median / mine.median for name, timing in timings.items()} | {"seconds": mine.median}
    base = {"who": "tonari", "proved": proved, "recall": 1.0} | seconds_of(mine)
    rows = [base | verdict for verdict in run.verdicts(case.bars, measured)]
    run.write(case, rows + [{"who": name} | seconds_of(timing) for name, timing in timings.items()])


def _case(metric: str, bits: int, *, m: int = 10_000, bar: float = 2.0) -> Case:
    bounded = metric == "hamming"
    return Case(
        *(f"{metric}-{bits}" + ("" if m > 1 else "-one"), "cpu", 1_000_000, m, bits // 8, 10),
        work=compare,
        data="bits",
        metric=metric,
        dtype="uint8",
        peers=(PEER,) if bounded else (),
        bars=(Bar(PEER, bar, home=""),) if bounded else (),
        cost=600 if m > 1 else 5,
    )


def _on_gpu(metric: str, most: float) -> Case:
    return Case(
        *(f"{metric}-1024", "cuda", 1_000_000, 10_000, 128, 10),
        work=compare,
        data="bits",
        metric=metric,
        dtype="uint8",
        bars=(Bar("seconds", most, most=True, home="H200"),),
        cost=60,
    )


SUITE = Suite(
    "bits",
    "bits",
    (
        *(_case(metric, bits) for metric in ("hamming", "jaccard") for bits in (256, 1024, 2048)),
        _case("hamming", 1024, m=1, bar=1.5),
        _on_gpu("hamming", 0.83),
        _on_gpu("jaccard", 1.28),
    ),
    libraries=("tonari", "numpy", "faiss-cpu", "torch", "triton"),
    torch=False,
    repeats=3,
    workload=workload,
)
