"""Exact search on the CPU, against FAISS and scikit-learn: verify, then time.

A case first proves its answer and is not timed without: the shape and order of every row, a sample of rows bit for
bit against ``tonari.metrics.reference.brute``, and every row against each peer within the rounding of the peer's
float32 arithmetic. Then ours and the peers take turns: one warm-up each, then ``repeats`` rounds, medians.

What is timed is the public API, one-shot from arrays to answer (the peer's index is built within its time too),
unless the case is ``prepared``: then only the search. Conversions that a peer needs and we do not (uint8 to float32)
are outside its time. A peer that would need more than ``seconds`` for one run gets a slice of the queries and its
time is scaled; ``peer_rows`` in the results says how many rows it searched.

``ratio`` is the peer's time over ours. ``fraction`` is 2 m n d operations over our time against the ceiling: the peak
rate of the instruction that our first screening kernel lives on (``tonari.core._native.peak_rate``), or, where that is
lower, what the memory can feed when every original value is read once.
A self-join that uses its symmetry, or a prepared index narrower than its points, can pass 1.
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from . import ceilings, datasets, machine, peers
from .datasets import Data

Array = npt.NDArray[Any]

# The bars were set for two cores and full-size data; other runs are recorded without a verdict.
BAR_THREADS = 2
# Pairs x dimensions that the float64 reference is asked for in one case: some seconds of NumPy.
REFERENCE_WORK = 10**9
REFERENCE_ROWS = 64
# A peer's threads may spin for a moment after their work; nobody is timed meanwhile.
SETTLE_SECONDS = 0.3
# FAISS takes queries in blocks of 4096: a slice is a whole number of them.
SLICE_ROWS = 4096
# Two pilots: the small one spares a slow peer, the large one does justice to one that wants large blocks.
PILOT_ROWS = (256, 2048)


class WrongAnswer(AssertionError):
    """An answer that failed its proof; it is not timed."""


@dataclass(frozen=True)
class Case:
    """One workload.

    ``make(scale)`` gives the data. ``against`` names the peers that the bar is about: the fastest of them carries it;
    ``beside`` names peers timed for information. ``"tonari euclidean"`` is our own euclidean search of the same data.
    ``bars`` maps an instruction-set level to the least ratio wanted. ``graph``: all points against all, without self.
    ``prepared``: the index is built before the clock starts. ``single``: one call per query, time per call.
    """

    name: str
    make: Callable[[float], Data]
    k: int = 10
    metric: str = "euclidean"
    against: tuple[str, ...] = ("faiss",)
    beside: tuple[str, ...] = ()
    bars: Mapping[str, float] = field(default_factory=dict)
    graph: bool = False
    prepared: bool = False
    single: bool = False


@dataclass(frozen=True)
class Settings:
    """How to run: see ``python -m benchmarks run --help``."""

    threads: int = 2
    scale: float = 1.0
    repeats: int = 5
    seconds: float = 20.0
    blas_core: str = "fastest"

    def core_of(self, peer: str) -> str | None:
        """OpenBLAS kernels for a peer: the fastest by measurement, OpenBLAS's own choice (None), or those named."""
        if self.blas_core == "fastest":
            return peers.fastest_blas_core(peer, self.threads)
        return None if self.blas_core == "own" else self.blas_core


class Timed(NamedTuple):
    """Seconds for the whole workload (per call if single), its answer, and how many rows that is."""

    seconds: float
    distances: Array
    indices: Array


def _rows(count: int, scale: float) -> int:
    return max(1, round(count * scale))


def _gaussian(d: int, m: int = 10_000, n: int = 100_000) -> Callable[[float], Data]:
    return lambda scale: datasets.gaussian(_rows(n, scale), _rows(m, scale), d)


def _bars(amx: float, avx512: float, avx2: float) -> dict[str, float]:
    return {"amx": amx, "avx512": avx512, "avx2": avx2}


WITHIN = _bars(1 / 1.2, 1 / 1.2, 1 / 1.2)

CASES: dict[str, Case] = {
    case.name: case
    for case in (
        Case(
            "graph-sift-f32",
            lambda scale: datasets.sift_photo(_rows(100_000, scale), "float32"),
            bars=_bars(30, 3, 2),
            graph=True,
        ),
        Case(
            "graph-sift-u8",
            lambda scale: datasets.sift_photo(_rows(100_000, scale), "uint8"),
            bars=_bars(35, 4, 2.5),
            graph=True,
        ),
        Case("search-gauss-k10", _gaussian(128), bars=_bars(20, 3, 2)),
        Case("search-gauss-k100", _gaussian(128), k=100, bars=_bars(15, 3, 2)),
        Case("search-gauss-k1000", _gaussian(128), k=1000, bars=_bars(8, 2.5, 2)),
        Case(
            "search-clustered-784",
            lambda scale: datasets.clustered(_rows(100_000, scale), _rows(10_000, scale), 784),
            bars=_bars(25, 3, 2),
        ),
        Case("search-16d", _gaussian(16), against=("faiss", "sklearn"), bars=_bars(6, 3, 2)),
        Case(
            "one-query-1m",
            lambda scale: datasets.gaussian(_rows(1_000_000, scale), 32, 128),
            bars=_bars(2, 1.2, 1),
            prepared=True,
            single=True,
        ),
        *(
            Case(
                f"metric-{metric}",
                _gaussian(128),
                metric=metric,
                against=("tonari euclidean",),
                beside=("faiss",),
                bars=WITHIN,
            )
            for metric in ("cosine", "correlation", "inner_product")
        ),
        Case("l1", _gaussian(128), metric="l1", against=("sklearn",), bars=_bars(5, 5, 3)),
    )
}


# --- the contestants ---------------------------------------------------------------------------------------------


class Contestant(Protocol):
    """Who takes turns with the clock."""

    name: str

    def run(self) -> Timed:
        """Do the workload once."""


class Ours:
    """tonari's public API on one case; ``metric`` replaces the case's."""

    def __init__(self, tonari: ModuleType, case: Case, data: Data, threads: int, metric: str | None = None) -> None:
        self.tonari, self.case, self.data, self.threads = tonari, case, data, threads
        self.metric = metric or case.metric
        self.name = f"tonari {self.metric}"
        self.index = tonari.Index(data.points, metric=self.metric, threads=threads) if case.prepared else None

    def run(self) -> Timed:
        """Search once, from arrays to answer."""
        tonari, case, (points, queries) = self.tonari, self.case, self.data
        options = {"threads": self.threads, "progress": False}
        start = time.perf_counter()
        if case.graph:
            graph = tonari.knn_graph(points, case.k, metric=self.metric, **options)
            return Timed(time.perf_counter() - start, graph.distances, graph.indices)
        assert queries is not None
        calls = [queries[i : i + 1] for i in range(len(queries))] if case.single else [queries]
        start = time.perf_counter()
        if self.index is not None:
            answers = [self.index.search(call, case.k, **options) for call in calls]
        else:
            answers = [tonari.search(call, points, case.k, metric=self.metric, **options) for call in calls]
        seconds = (time.perf_counter() - start) / len(calls)
        return Timed(
            seconds,
            np.concatenate([answer.distances for answer in answers]),
            np.concatenate([answer.indices for answer in answers]),
        )


class Theirs:
    """A running peer on one case, on as many rows as it may take; its first run decides how many."""

    def __init__(self, peer: peers.RunningPeer, case: Case, rows: int, seconds: float) -> None:
        self.peer, self.case, self.name = peer, case, peer.name
        self.all_rows = self.rows = rows
        if not case.single:
            # The very first call also pays for imports and thread starts.
            self._ask(min(rows, PILOT_ROWS[0]))
            estimate = 0.0
            for pilot in PILOT_ROWS:
                pilot = min(rows, pilot)
                if estimate * pilot / rows > seconds:
                    break
                estimate = self._ask(pilot).search_seconds * rows / pilot
            if estimate > seconds:
                wanted = rows * seconds / estimate
                blocks = int(wanted // SLICE_ROWS) * SLICE_ROWS
                self.rows = blocks or max(PILOT_ROWS[0], int(wanted))

    def _ask(self, rows: int) -> peers.Reply:
        # A graph by a search holds each point itself: one more is asked for.
        k = self.case.k + self.case.graph
        return self.peer.search(peers.Request(0, rows, k, self.case.single, self.case.prepared))

    def run(self) -> Timed:
        """Search ``rows`` rows; the time is scaled to all of them, building the index counted once."""
        reply = self._ask(self.rows)
        if self.case.single:
            seconds = reply.search_seconds / self.rows
        else:
            seconds = reply.search_seconds * self.all_rows / self.rows
        if not self.case.prepared:
            seconds += reply.prepare_seconds
        return Timed(seconds, reply.distances, reply.indices)


# --- proof -------------------------------------------------------------------------------------------------------


def check_rows(found: Timed, n: int, k: int, *, descending: bool, graph: bool) -> None:
    """Raise WrongAnswer unless every row is k distinct, existing points, best first, ties by index, without self."""
    distances, indices = found.distances, found.indices
    if distances.shape != indices.shape or distances.shape[1] != k:
        raise WrongAnswer(f"shapes {distances.shape} and {indices.shape}, expected k = {k} columns")
    if indices.min() < 0 or indices.max() >= n:
        raise WrongAnswer(f"an index outside 0 to {n - 1}")
    steps = np.diff(distances.astype(np.float64), axis=1) * (-1 if descending else 1)
    disorder = (steps < 0) | ((steps == 0) & (np.diff(indices, axis=1) <= 0))
    if disorder.any():
        raise WrongAnswer(f"row {int(np.argmax(disorder.any(axis=1)))} is out of order")
    repeats = (np.diff(np.sort(indices, axis=1), axis=1) == 0).any(axis=1)
    if repeats.any():
        raise WrongAnswer(f"row {int(np.argmax(repeats))} holds a point twice")
    if graph:
        own = (indices == np.arange(len(indices))[:, None]).any(axis=1)
        if own.any():
            raise WrongAnswer(f"row {int(np.argmax(own))} holds itself")


def check_reference(tonari: ModuleType, found: Timed, case: Case, data: Data, metric: str) -> int:
    """Compare a sample of rows bit for bit with the float64 reference; return how many were compared."""
    points = data.points
    queries = points if data.queries is None else data.queries
    count = int(np.clip(REFERENCE_WORK // points.size, 4, REFERENCE_ROWS))
    chosen = np.random.default_rng(0).permutation(len(queries))[:count]
    truth = tonari.metrics.reference.brute(
        queries[chosen], points, case.k, metric, self_ids=chosen.astype(np.int64) if case.graph else None
    )
    for name, ours, true in (
        ("index", found.indices[chosen], truth.indices),
        ("distance", found.distances[chosen], truth.distances),
    ):
        wrong = (ours != true).any(axis=1)
        if wrong.any() or ours.dtype != true.dtype:
            row = int(np.argmax(wrong))
            raise WrongAnswer(
                f"{name} of row {chosen[row]} differs from the reference: "
                f"{ours[row][:5]} {ours.dtype}, expected {true[row][:5]} {true.dtype}"
            )
    return len(chosen)


def without_self(distances: Array, indices: Array) -> tuple[Array, Array]:
    """A search of points among themselves (m, k + 1) as graph rows (m, k): own entry, or the last, goes."""
    own = indices == np.arange(len(indices))[:, None]
    own[~own.any(axis=1), -1] = True
    return distances[~own].reshape(len(own), -1), indices[~own].reshape(len(own), -1)


def agreement(ours: Timed, theirs: Timed, case: Case, data: Data) -> float:
    """Share of the peer's indices that ours holds too; WrongAnswer when distances differ by more than its rounding.

    Rank by rank: the j-th smallest of numbers each changed by at most t changes by at most t. The peer sums d float32
    products, so t = 8 eps sqrt(d) x the size of what it sums: |q|^2 + max |x|^2 for squared L2, |q| max |x| for
    inner products, 1 for cosines, the distance itself for the elementwise metrics. Peers answer the first rows only.
    """
    distances, indices = without_self(theirs.distances, theirs.indices) if case.graph else theirs[1:]
    rows = len(indices)
    queries = (data.points if data.queries is None else data.queries)[:rows].astype(np.float64)
    reach = float(np.sqrt(max((block.astype(np.float64) ** 2).sum(axis=1).max() for block in _blocks(data.points))))
    norms = np.linalg.norm(queries, axis=1, keepdims=True)
    mine, other = ours.distances[:rows].astype(np.float64), distances.astype(np.float64)
    slack = 8 * np.finfo(np.float32).eps * np.sqrt(queries.shape[1])
    size: Array
    if case.metric == "euclidean":
        mine, other, size = mine**2, other**2, norms**2 + reach**2
    elif case.metric == "inner_product":
        size = norms * reach
    elif case.metric in ("cosine", "correlation"):
        size = np.ones_like(norms)
    else:
        size = mine
    apart = (~(np.abs(mine - other) <= slack * size)).any(axis=1)
    if apart.any():
        row = int(np.argmax(apart))
        raise WrongAnswer(
            f"row {row} disagrees with the peer: {ours.distances[row][:5]} here, {distances[row][:5]} there"
        )
    span = len(data.points)
    base = np.arange(rows, dtype=np.int64)[:, None] * span
    return float(np.isin(base + indices, base + ours.indices[:rows]).mean())


def _blocks(rows: Array, size: int = 1 << 14) -> list[Array]:
    return [rows[i : i + size] for i in range(0, len(rows), size)]


def prove(tonari: ModuleType, found: Timed, case: Case, data: Data, metric: str) -> int:
    """All proofs that need no peer; the number of rows compared with the reference."""
    expected = len(data.points if data.queries is None else data.queries)
    if len(found.indices) != expected:
        raise WrongAnswer(f"{len(found.indices)} rows, expected {expected}")
    check_rows(found, len(data.points), case.k, descending=metric == "inner_product", graph=case.graph)
    return check_reference(tonari, found, case, data, metric)


# --- running -----------------------------------------------------------------------------------------------------


def say(message: str) -> None:
    """Progress, on stderr."""
    print(message, file=sys.stderr, flush=True)


def take_turns(contestants: list[Contestant], repeats: int) -> dict[str, list[float]]:
    """Seconds of each contestant: one warm-up each, then ``repeats`` rounds in which everyone runs once."""
    seconds: dict[str, list[float]] = {contestant.name: [] for contestant in contestants}
    for turn in range(repeats + 1):
        for contestant in contestants:
            time.sleep(SETTLE_SECONDS)
            elapsed = contestant.run().seconds
            if turn:
                seconds[contestant.name].append(elapsed)
    return seconds


def run_case(tonari: ModuleType, case: Case, settings: Settings) -> list[dict[str, Any]]:
    """Prove and time one case: a row of results for each peer, one without a peer where none could run.

    Raises
    ------
    WrongAnswer
        Before anything was timed.
    """
    say(f"{case.name}: making data")
    data = case.make(settings.scale)
    ours = Ours(tonari, case, data, settings.threads)
    say(f"{case.name}: proving")
    found = ours.run()
    verified = prove(tonari, found, case, data, case.metric)
    rivals: list[Contestant] = []
    recalls: dict[str, float] = {}
    with contextlib.ExitStack() as stack:
        for name in case.against + case.beside:
            if name == "tonari euclidean":
                euclidean = Ours(tonari, case, data, settings.threads, "euclidean")
                prove(tonari, euclidean.run(), case, data, "euclidean")
                rivals.append(euclidean)
                continue
            theirs = start_peer(stack, name, case, data, settings)
            if theirs is not None:
                recalls[name] = agreement(found, theirs.run(), case, data)
                rivals.append(theirs)
        del found
        say(f"{case.name}: timing against {', '.join(rival.name for rival in rivals) or 'nobody'}")
        seconds = take_turns([ours, *rivals], settings.repeats)
    return describe_results(tonari, case, data, settings, verified, seconds, rivals, recalls)


def start_peer(stack: contextlib.ExitStack, name: str, case: Case, data: Data, settings: Settings) -> Theirs | None:
    """The named peer in its own process, or None after saying why it cannot run."""
    missing = peers.PEERS[name].missing()
    if missing:
        say(f"{case.name}: {missing}")
        return None
    queries = data.points if data.queries is None else data.queries
    core = settings.core_of(name)
    running = peers.RunningPeer(name, data.points, queries, case.metric, settings.threads, core)
    return Theirs(stack.enter_context(running), case, len(queries), settings.seconds)


def run_peers(case: Case, settings: Settings) -> list[tuple[str, float, float, float, int]]:
    """Time only the peers of a case: (name, median, least, most seconds, rows searched) of each; needs no tonari."""
    data = case.make(settings.scale)
    lines = []
    for name in case.against + case.beside:
        if name not in peers.PEERS:
            continue
        with contextlib.ExitStack() as stack:
            theirs = start_peer(stack, name, case, data, settings)
            if theirs is not None:
                times = take_turns([theirs], settings.repeats)[name]
                lines.append((name, float(np.median(times)), min(times), max(times), theirs.rows))
    return lines


def describe_results(
    tonari: ModuleType,
    case: Case,
    data: Data,
    settings: Settings,
    verified: int,
    seconds: dict[str, list[float]],
    rivals: list[Contestant],
    recalls: dict[str, float],
) -> list[dict[str, Any]]:
    """Rows of the results file (``report.COLUMNS``)."""
    n, d = data.points.shape
    m = 1 if case.single else n if data.queries is None else len(data.queries)
    mine = seconds[f"tonari {case.metric}"]
    plan = tonari.plan(n, m, d, case.k, dtype=str(data.points.dtype), metric=case.metric, threads=settings.threads)
    level = plan.isa
    operations = 2.0 * m * n * d
    rate = operations / float(np.median(mine))
    ceiling, ceiling_name = ceiling_of(tonari, plan, data, settings.threads)
    versions = " ".join(f"{name}={number}" for name, number in machine.library_versions().items())
    shared = {
        "date": machine.today(),
        "machine": machine.cpu_name(),
        "isa": level,
        "threads": settings.threads,
        "commit": machine.commit(),
        "versions": versions,
        "case": case.name,
        "n": n,
        "m": m,
        "d": d,
        "k": case.k,
        "metric": case.metric,
        "dtype": str(data.points.dtype),
        "prepared": case.prepared,
        "scale": settings.scale,
        "repeats": settings.repeats,
        "seconds_median": float(np.median(mine)),
        "seconds_min": min(mine),
        "seconds_max": max(mine),
        "gflops": rate / 1e9,
        "ceiling_gflops": ceiling / 1e9,
        "ceiling": ceiling_name,
        "fraction": rate / ceiling,
        "verified": verified,
    }
    medians = {rival.name: float(np.median(seconds[rival.name])) for rival in rivals}
    present = [name for name in case.against if name in medians]
    # "The better of two" cannot be told when one of them is missing.
    carrier = min(present, key=medians.__getitem__) if present and len(present) == len(case.against) else None
    judged = settings.scale == 1 and settings.threads == BAR_THREADS
    rows = []
    for rival in rivals:
        ratio = medians[rival.name] / shared["seconds_median"]
        bar = case.bars.get(level) if rival.name == carrier and judged else None
        sliced = rival.rows if isinstance(rival, Theirs) and rival.rows < rival.all_rows else None
        core = (settings.core_of(rival.name) or "own") if isinstance(rival, Theirs) else None
        rows.append(
            shared
            | {
                "peer": rival.name,
                "peer_blas_core": core,
                "peer_seconds": medians[rival.name],
                "peer_rows": sliced,
                "peer_recall": recalls.get(rival.name),
                "ratio": ratio,
                "bar": bar,
                "passed": None if bar is None else ratio >= bar,
            }
        )
    return rows or [shared]


def ceiling_of(tonari: ModuleType, plan: Any, data: Data, threads: int) -> tuple[float, str]:
    """FLOP/s that this machine could give the case at most, and which limit that is."""
    kernel = plan.kernel(plan.precisions[0])
    peak = ceilings.kernel_peak(tonari.core._native, kernel, threads)
    queries = 0 if data.queries is None else plan.m * plan.d * data.queries.itemsize
    fed = 2.0 * plan.m * plan.n * plan.d / (data.points.nbytes + queries) * ceilings.read_rate(threads)
    return (fed, "memory read") if fed < peak else (peak, kernel)
