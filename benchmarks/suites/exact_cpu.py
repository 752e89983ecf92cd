"""Exact search on the CPU, compared with FAISS and scikit-learn: answers are verified, then timed.

A case is timed only after its answer is verified: the shape and order of every row, a sample of rows bit for bit
against ``tonari.metrics.reference.brute``, and every row against each peer, within the rounding of the peer's float32
arithmetic. Then tonari and the peers are timed alternately: one warm-up each, then rounds, whose median counts.

The public functions are timed, from arrays to answer, with the time of building the peer's index. If the case is
``prepared``, only the search is timed. Conversions that only a peer needs (uint8 to float32) are not included in its
time. A peer that would take longer than --peer-seconds for one run gets a part of the queries, and its time is scaled.
Peers run with the OpenBLAS kernels that are fastest for them on this machine.

In the extras of tonari's rows, ``fraction`` is 2 m n d operations divided by tonari's seconds and by the ceiling. The
ceiling is the peak rate of the instruction of our first screening kernel (``tonari.core._native.peak_rate``), or the
rate at which memory delivers every original value once, if that is lower. A self-join that uses its symmetry, or a
prepared index that is narrower than its points, can exceed 1.
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from ..harness import ceilings
from ..harness.case import Bar, Case, Suite
from ..harness.contest import Contestant, Theirs, Timed, race, start_peers
from ..harness.datasets import gist, hard, made_up, photographs, synthesized
from ..harness.datasets.data import Data, split
from ..harness.peers.cpu import fastest_blas_core
from ..harness.proof import check_rows, neighbors, own_places
from ..harness.run import Run, say, seconds_of
from . import growth

EUCLIDEAN = "tonari euclidean"
ALL_COLUMNS = "tonari all columns"  # name of the contestant that searches a case without contraction
IN_MEMORY = "tonari in memory"  # name of the contestant that has the rows in memory, without codes
OURS = (EUCLIDEAN, ALL_COLUMNS, IN_MEMORY)
MAKERS: dict[str, Callable[[Case], Data]] = {
    "sift": lambda case: photographs.sift_photo(case.n, case.dtype, m=case.queries),
    "gaussian": lambda case: made_up.gaussian(case.n, case.queries, case.d),
    "clustered": lambda case: made_up.clustered(case.n, case.queries, case.d),
    "half zeros": lambda case: made_up.half_zeros(case.n, case.queries, case.d),
    "gist": lambda case: split(gist.gist(case.n + case.queries, "cpu", seed=0).numpy(), case.n),
    "synthesized": lambda case: synthesized.whole_rows(case.n, case.queries, case.d, case.dtype),
    "topics": lambda case: Data(hard.make("topics", case.n, 0, case.d, "cpu").points.numpy(), None),
}


class Ours:
    """Calls tonari on one case.

    ``metric`` replaces the case's metric, and ``whole`` means that all columns are screened.

    If the parameters of the case have ``codes``, the rows are in a file and the index holds their codes, except with
    ``in_memory``.
    """

    def __init__(
        self,
        run: Run,
        case: Case,
        data: Data,
        metric: str | None = None,
        *,
        whole: bool = False,
        in_memory: bool = False,
    ) -> None:
        self.metric = metric or case.metric
        self.name = ALL_COLUMNS if whole else IN_MEMORY if in_memory else f"tonari {self.metric}"
        self._run, self._case, self._data = run, case, data
        self._set: dict[str, Any] = {"form_dim": data.points.shape[1]} if whole else {}
        self._index: Any = None
        if case.prepared and case.parameters and not in_memory:
            folder = tempfile.mkdtemp()
            weakref.finalize(self, shutil.rmtree, folder)
            path = Path(folder, "points.npy")
            np.save(path, data.points)
            self._index = run.tonari.Index(path, metric=self.metric, threads=run.threads, **case.parameters)
        elif case.prepared:
            self._index = run.tonari.Index(data.points, metric=self.metric, threads=run.threads)

    def calls(self) -> list[Callable[[], Any]]:
        """Return the calls of the public functions that are timed: one call, or one for each single query."""
        tonari, case, (points, queries) = self._run.tonari, self._case, self._data
        options = self._run.options()
        if self._set:
            shape = len(points), len(points) if queries is None else len(queries), points.shape[1], case.k
            chosen = {"dtype": case.dtype, "metric": self.metric, "self_join": case.graph}
            plan = tonari.plan(*shape, **chosen, **self._set, threads=self._run.threads)
            options = {"plan": plan, "progress": False}
        if case.graph:
            return [lambda: tonari.knn_graph(points, case.k, metric=self.metric, **options)]
        assert queries is not None
        parts = [queries[i : i + 1] for i in range(len(queries))] if case.single else [queries]
        if self._index is not None:  # calls refer to this object: its file is deleted when it goes
            return [lambda part=part: self._index.search(part, case.k, **options) for part in parts]
        return [lambda part=part: tonari.search(part, points, case.k, metric=self.metric, **options) for part in parts]

    def run(self) -> Timed:
        """Run all calls once; return their seconds and the answer."""
        calls = self.calls()
        answers: list[Any] = []
        seconds = self._run.device.once(lambda: answers.extend(call() for call in calls))
        whole = (np.concatenate([getattr(one, part) for one in answers]) for part in ("distances", "indices"))
        return Timed(seconds / len(calls), *whole)


def load(run: Run, case: Case) -> Data:
    """Return the points and queries of a case; successive cases share them."""
    shape = (case.data, case.n, case.queries, case.d, case.dtype)
    found: Data = run.keep(shape, lambda: MAKERS[case.data](case))
    return found


def workload(run: Run, case: Case) -> Callable[[], Any]:
    """Return a function that makes all timed calls of a case once, for a comparison of two versions."""
    calls = Ours(run, case, load(run, case)).calls()
    return lambda: [call() for call in calls][-1]


def prove(found: Timed, case: Case, data: Data, metric: str) -> int:
    """Verify an answer of tonari; return the number of rows that were compared with the reference."""
    from tonari.metrics import reference

    queries = data.points if data.queries is None else data.queries
    descending = metric == "inner_product"
    n = len(data.points)
    check_rows(found.distances, found.indices, len(queries), n, case.k, graph=case.graph, descending=descending)
    return neighbors.check_reference(reference, found, queries, data.points, case.k, metric, graph=case.graph)


def agreement(ours: Timed, theirs: Timed, case: Case, data: Data) -> float:
    """Return the recall of a peer; raise WrongAnswer if its distances differ by more than its rounding."""
    distances, indices = theirs.distances, theirs.indices
    if case.graph:
        own = own_places(indices)
        distances, indices = (part[~own].reshape(len(own), -1) for part in (distances, indices))
    queries = data.points if data.queries is None else data.queries
    return neighbors.agreement(ours, (distances, indices), queries, data.points, case.metric)


def search(run: Run, case: Case) -> None:
    """Verify and time a case; write a row of tonari for each bar, and a row of each peer."""
    data = load(run, case)
    ours = Ours(run, case, data)
    say(f"{case.name}: proving")
    found = ours.run()
    proved = prove(found, case, data, case.metric)
    rivals: list[Contestant] = []
    recalls: dict[str, float] = {}
    queries = data.points if data.queries is None else data.queries
    cores: dict[str, str | None] = {}

    def core_of(name: str) -> str | None:
        cores[name] = fastest_blas_core(name, run.threads or 1)
        return cores[name]

    with contextlib.ExitStack() as stack:
        for name in OURS:
            if name in case.peers and run.wants(name):
                kind = {"whole": name == ALL_COLUMNS, "in_memory": name == IN_MEMORY}
                other = Ours(run, case, data, "euclidean" if name == EUCLIDEAN else None, **kind)
                prove(other.run(), case, data, other.metric)
                rivals.append(other)
        for peer in start_peers(stack, run, case, data.points, queries, core_of):
            theirs = Theirs(peer, case, len(queries), run.peer_seconds)
            recalls[peer.name] = agreement(found, theirs.run(), case, data)
            rivals.append(theirs)
        del found
        say(f"{case.name}: timing against {', '.join(rival.name for rival in rivals) or 'nobody'}")
        timings = race([ours, *rivals], run.repeats)
    mine = timings.pop(ours.name)
    metric, dtype = compared(case)
    plan = run.tonari.plan(
        case.n, case.m, data.points.shape[1], case.k, dtype=dtype, metric=metric, threads=run.threads
    )
    facts = {"who": "tonari", "isa": plan.isa, "proof": neighbors.PROOF, "proved": proved} | seconds_of(mine)
    facts["extras"] = against_ceiling(run, plan, data, mine.median)
    measured = {name: timing.median / mine.median for name, timing in timings.items()}
    rows = [facts | verdict for verdict in verdicts(run, case, measured, plan.isa)]
    for rival in rivals:
        row = {"who": rival.name, "isa": plan.isa, "ratio": measured[rival.name]} | seconds_of(timings[rival.name])
        if isinstance(rival, Ours):
            row["metric"] = rival.metric
        elif isinstance(rival, Theirs):
            row |= {"dtype": "float32", "recall": recalls[rival.name]} | rival.sliced()
            row["extras"] = {"blas_core": cores[rival.name] or "own"}
        rows.append(row)
    run.write(case, rows)


def compared(case: Case) -> tuple[str, str]:
    """Return the metric and the dtype that the screen gets, after the metric's transformation of the rows."""
    from tonari.metrics.transforms.change import change_of

    change = change_of(case.metric)
    return (case.metric, case.dtype) if change is None else (change.base, "float64")


def verdicts(run: Run, case: Case, measured: dict[str, float], isa: str) -> list[dict[str, Any]]:
    """Return the verdicts on a case's bars for an instruction set.

    Some bars name another contestant of tonari, with which tonari is compared. All other bars refer to the fastest of
    the case's peers, and have no verdict if one of the peers is missing.
    """
    found = []
    for bar in (bar for bar in case.bars if bar.isa == isa):
        about = (bar.on,) if bar.on in OURS else case.against
        if about and all(name in measured for name in about):
            carrier = min(about, key=measured.__getitem__)
            found.append(bar.verdict(measured[carrier], judged=run.judges(bar, isa)) | {"bar_on": carrier})
    return found or [{}]


def against_ceiling(run: Run, plan: Any, data: Data, seconds: float) -> dict[str, Any]:
    """Return extras about the speed.

    These are the operations per second for all pairs, the name of the ceiling, and the fraction of the ceiling reached.
    """
    rate = 2.0 * plan.m * plan.n * plan.d / seconds
    ceiling, name = ceiling_of(plan, data, run.threads or 1)
    return {
        "gflops": rate / 1e9,
        "ceiling_gflops": ceiling / 1e9,
        "ceiling": name,
        "fraction": rate / ceiling,
    }


def ceiling_of(plan: Any, data: Data, threads: int) -> tuple[float, str]:
    """Return the highest FLOP/s that this machine allows for a case, and the name of the limit."""
    from tonari.core import _native

    kernel = plan.kernels[plan.precisions[0]]
    peak = ceilings.kernel_peak(_native, kernel, threads)
    queries = 0 if data.queries is None else plan.m * plan.d * data.queries.itemsize
    fed = 2.0 * plan.m * plan.n * plan.d / (data.points.nbytes + queries) * ceilings.read_rate(threads)
    return (fed, "memory read") if fed < peak else (peak, kernel)


# --- the cases ---------------------------------------------------------------------------------------------------

FAISS = ("faiss",)


def _bars(amx: float, avx512: float, avx2: float, on: str = "times faster") -> tuple[Bar, ...]:
    """Return a bar on the speed-up for each instruction set; ``on`` names the rival, by default the fastest peer."""
    levels = {"amx": amx, "avx512": avx512, "avx2": avx2}
    return tuple(Bar(on, bound, home="", isa=isa) for isa, bound in levels.items())


def _contracted(levels: tuple[Bar, ...], times: float) -> dict[str, Any]:
    """Return the peers and bars of a contracted search: `levels`, and its speed-up over the search in all columns."""
    return {"peers": (*FAISS, ALL_COLUMNS), "bars": (*levels, *_bars(times, times, times, on=ALL_COLUMNS))}


def _on_disk(name: str, m: int, **changes: Any) -> Case:
    """Return a case with the points in a file and their codes in memory; its rivals have the points in memory."""
    shape: dict[str, Any] = {"n": 99_000, "m": m, "data": "sift", "parameters": {"codes": "int8"}, "prepared": True}
    return _case(name, **shape | {"peers": (*FAISS, IN_MEMORY), "bars": _bars(1, 1, 1)} | changes)


def _case(name: str, *, bars: tuple[Bar, ...], against: tuple[str, ...] = FAISS, **changes: Any) -> Case:
    shape: dict[str, Any] = {"n": 100_000, "m": 10_000, "d": 128, "k": 10, "peers": against}
    return Case(name, "cpu", bars=bars, against=against, work=search, **shape | changes)


def _graph(name: str, dtype: str, bars: tuple[Bar, ...]) -> Case:
    return _case(name, m=100_000, data="sift", dtype=dtype, graph=True, bars=bars, cost=150)


def _gist(name: str, **changes: Any) -> Case:
    return _case(name, n=50_000, d=gist.WIDTH, data="gist", **changes)


def _one_query(name: str, **changes: Any) -> Case:
    single: dict[str, Any] = {"m": 1, "asked": 32, "prepared": True, "cost": 60}
    return _case(name, against=("faiss", "panorama"), **single | changes)


SUITE = Suite(
    "exact_cpu",
    "exact_cpu",
    (
        _graph("graph-sift-f32", "float32", _bars(30, 3, 2)),
        _graph("graph-sift-u8", "uint8", _bars(35, 4, 2.5)),
        _case("search-gauss-k10", bars=_bars(20, 3, 2)),
        _case("search-gauss-k100", k=100, bars=_bars(15, 3, 2)),
        _case("search-gauss-k1000", k=1000, bars=_bars(8, 2.5, 2)),
        # with k of n / 4 or n / 15, sorting takes most of the time
        _case("search-gauss-k2000", n=30_000, m=500, k=2000, bars=_bars(1.8, 1.8, 1.8)),
        _case("search-gauss-k7500", n=30_000, m=100, k=7500, bars=_bars(1.8, 1.8, 1.8)),
        _case("search-gauss-768-k5000", n=10_000, m=100, d=768, k=5000, bars=_bars(1.8, 1.8, 1.8)),
        _case("search-clustered-784", d=784, data="clustered", **_contracted(_bars(25, 3, 2), 4), cost=120),
        # half of the rows of these data are zero, hence equal
        _case("graph-half-zeros", n=50_000, m=50_000, data="half zeros", graph=True, bars=_bars(5, 5, 3)),
        # these rows vary in few directions, and are contracted (docs/exactness.md, "Contracted forms")
        _gist("graph-gist-960", m=50_000, graph=True, **_contracted(_bars(25, 3, 2), 6.7), cost=300),
        _gist("search-gist-960", bars=_bars(25, 3, 2), cost=120),
        _one_query("one-query-gist-960", n=50_000, d=gist.WIDTH, data="gist", bars=_bars(1, 2, 1)),
        _one_query("one-query-clustered-784", n=60_000, d=784, data="clustered", bars=_bars(1, 2.8, 1)),
        _one_query("one-query-sift", n=99_000, data="sift", bars=_bars(1, 1, 1)),
        _case("search-16d", d=16, against=("faiss", "sklearn"), bars=_bars(6, 3, 2)),
        _case("one-query-1m", n=1_000_000, m=1, asked=32, prepared=True, bars=_bars(2, 1.2, 1)),
        _on_disk("rows-on-disk", 1000),
        _on_disk("one-query-on-disk", 1, asked=32),
        *(
            _on_disk(
                f"{name}-on-disk-10m",
                m,
                n=10_000_000,
                data="synthesized",
                against=(IN_MEMORY,),
                peers=(IN_MEMORY,),
                bars=_bars(bar, bar, bar, on=IN_MEMORY),
                cost=900,
                **shape,
            )
            for name, m, bar, shape in (("rows", 1000, 0.5, {}), ("one-query", 1, 1, {"asked": 32}))
        ),
        *(
            _case(
                f"metric-{metric}",
                metric=metric,
                against=(EUCLIDEAN,),
                peers=(EUCLIDEAN, "faiss"),
                bars=_bars(1 / 1.2, 1 / 1.2, 1 / 1.2),
            )
            for metric in ("cosine", "correlation", "inner_product")
        ),
        _case("l1", metric="l1", against=("sklearn",), bars=_bars(5, 5, 3)),
        _case("minkowski-3", metric="minkowski:3", against=("sklearn",), bars=_bars(5, 5, 3)),
        *(
            _case(name, against=("faiss", "sklearn"), bars=_bars(4, 3, 1.5), cost=90, **shape)
            for name, shape in growth.shapes(growth.ON_CPU)
        ),
    ),
    libraries=("tonari", "numpy", "faiss-cpu", "scikit-learn"),
    torch=False,
    peer_seconds=20.0,
    workload=workload,
    figures=growth.figures,
)
