"""The workloads of the k-d tree and what they are held to, in the order in which they share data."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from . import kdtree_auto, kdtree_gieseke2014, kdtree_rounds, kdtree_search, kdtree_stream
from .exact_gpu_rows import Bar
from .kdtree_run import TreeRun

MILLION = 1_000_000
TREES = ("pykdtree", "ckdtree")
PAPER_QUERIES = 1_178 * MILLION
STREAM_RATE = 1e7


@dataclass(frozen=True)
class Case:
    """One workload of euclidean distances between float32 rows.

    Attributes
    ----------
    device : "cpu" or "cuda"
    graph : the queries are the points, and no point finds itself
    data : kind of ``kdtree_data``
    exact_rows : queries that brute force is timed on, 0 for none; what it takes is scaled to all
    auto : whether method="auto" is timed too
    peers : of ``peers.PEERS``
    truth_k : largest k that is asked of these data, where that is more than k
    chunk : queries of a stream's chunk
    figure : of gieseke2014, where the case is a point of one
    cost : seconds that the whole takes on the machine it is for
    prepared, single : as in ``exact_cpu``: the index is made before the clock starts, queries come together
    """

    name: str
    device: str
    n: int
    m: int
    d: int
    k: int = 10
    data: str = "sift"
    graph: bool = False
    exact_rows: int = 0
    auto: bool = False
    peers: tuple[str, ...] = ()
    truth_k: int = 0
    chunk: int = 0
    figure: str = ""
    bars: tuple[Bar, ...] = ()
    cost: float = 30.0
    prepared: bool = True
    single: bool = False
    work: Callable[[TreeRun, Any], None] = kdtree_search.search

    def resized(self, **changes: Any) -> Case:
        """The case with other sizes."""
        return replace(self, **changes)

    def scaled(self, scale: float) -> Case:
        """Fewer points and queries, enough for k all the same; a graph then has as many queries as points."""
        n = max(round(self.n * scale), 2 * max(self.k, self.truth_k))
        m = n if self.graph else max(2, round(self.m * scale))
        return replace(self, n=n, m=m, chunk=max(1, round(self.chunk * scale)))

    def columns(self) -> dict[str, Any]:
        """Columns of the results that say what was asked."""
        names = ("n", "m", "d", "k", "data", "figure")
        return {"case": self.name, "dtype": "float32"} | {name: getattr(self, name) for name in names}


def _against(pykdtree: float, ckdtree: float = 3.0) -> tuple[Bar, ...]:
    """Times faster than each."""
    return Bar("pykdtree", pykdtree, home=""), Bar("ckdtree", ckdtree, home="")


def _cpu() -> list[Case]:
    bars = {3: 2.0, 5: 2.0, 10: 3.0, 15: 5.0}
    common: dict[str, Any] = {"device": "cpu", "n": MILLION, "m": 200_000, "peers": TREES}
    found = [
        Case(f"sift-d{d}", d=d, bars=_against(bar), exact_rows=8192, cost=60 + 10 * d, **common)
        for d, bar in bars.items()
    ]
    found += [
        Case("sift-d20", d=20, exact_rows=8192, cost=300, **common | {"m": 20_000}),
        Case("magnitudes-d10", d=10, data="magnitudes", bars=_against(3.0), cost=90, **common),
        Case("pixels-d5", d=5, data="pixels", bars=_against(2.0), cost=60, **common),
        Case("uniform-d3", d=3, data="uniform", bars=_against(2.0), cost=60, **common),
    ]
    build = Bar("pykdtree", 1.0, home="")
    found.append(Case("build-d10", d=10, bars=(build,), work=kdtree_search.build, cost=60, **common | {"m": 10_000}))
    found.append(
        Case(
            "graph-d3",
            "cpu",
            MILLION,
            MILLION,
            3,
            32,
            data="uniform",
            graph=True,
            cost=120,
            work=kdtree_search.graph,
        )
    )
    for name, work in (("stream", kdtree_stream.stream), ("stream-file", kdtree_stream.file_stream)):
        found.append(
            Case(
                name,
                "cpu",
                MILLION,
                2 * MILLION,
                10,
                data="magnitudes",
                chunk=250_000,
                work=work,
                cost=90,
            )
        )
    return found


def _seconds(bound: float) -> Bar:
    return Bar("seconds", bound, most=True)


def _cuda() -> list[Case]:
    common: dict[str, Any] = {"device": "cuda", "n": 2 * MILLION, "m": 10 * MILLION, "exact_rows": MILLION}
    bars: dict[int, tuple[Bar, ...]] = {
        5: (_seconds(0.5),),
        10: (_seconds(1.0),),
        15: (_seconds(2.5),),
        20: (),
        # Brute force may win here, if auto then picks it.
        27: (Bar("exact over auto", 1 / 1.2),),
    }
    found = [
        Case(f"sift-d{d}", d=d, bars=bar, auto=d > 15, cost=40 if d <= 15 else 90, **common) for d, bar in bars.items()
    ]
    found += [
        Case("magnitudes-d10", d=10, data="magnitudes", bars=(_seconds(1.0),), **common),
        Case("pixels-d5", d=5, data="pixels", bars=(_seconds(0.5),), **common),
        Case("uniform-d3", d=3, data="uniform", **common),
        Case(
            "graph-d3",
            "cuda",
            MILLION,
            MILLION,
            3,
            32,
            data="uniform",
            graph=True,
            bars=(_seconds(15e-3),),
            exact_rows=MILLION,
            work=kdtree_search.graph,
        ),
        Case(
            "build-d10",
            d=10,
            bars=(_seconds(20e-3),),
            work=kdtree_search.build,
            **common | {"n": MILLION, "m": 100_000, "exact_rows": 0},
        ),
        Case(
            "stream",
            "cuda",
            2 * MILLION,
            PAPER_QUERIES // 10,
            10,
            data="magnitudes",
            chunk=10 * MILLION,
            bars=tuple(Bar(way, STREAM_RATE) for way in ("on the device", "in host memory")),
            cost=60,
            work=kdtree_stream.stream,
        ),
        Case(
            "stream-file",
            "cuda",
            2 * MILLION,
            PAPER_QUERIES // 10,
            10,
            data="magnitudes",
            chunk=10 * MILLION,
            bars=(Bar("file to file", STREAM_RATE),),
            cost=90,
            work=kdtree_stream.file_stream,
        ),
    ]
    return found


def _paper() -> list[Case]:
    """gieseke2014's figures, and its rounds; the sizes are its own on CUDA."""
    found = []
    for device, m, exact_rows in (("cpu", 100_000, 4096), ("cuda", 10 * MILLION, MILLION)):
        common: dict[str, Any] = {"device": device, "n": MILLION, "m": m, "data": "magnitudes"}
        for d in (5, 10):
            for figure, work in (("2", kdtree_gieseke2014.heights), ("3a", kdtree_gieseke2014.orders)):
                found.append(Case(f"fig{figure}-d{d}", d=d, figure=figure, cost=90, work=work, **common))
        common |= {"d": 10, "exact_rows": exact_rows, "peers": ("pykdtree",), "cost": 120}
        most_k = max(kdtree_gieseke2014.KS)
        found.append(Case("fig5-d10", figure="5", truth_k=most_k, work=kdtree_gieseke2014.neighbours, **common))
        found.append(Case("fig6-d10", figure="6", work=kdtree_gieseke2014.sizes, **common))
        found.append(
            Case(
                "rounds-d10",
                device,
                MILLION,
                100_000 if device == "cpu" else MILLION,
                10,
                data="magnitudes",
                cost=180,
                work=kdtree_rounds.compare,
            )
        )
    return found


def _auto() -> list[Case]:
    """Cells of the grid that share a width."""
    found = []
    for device in ("cpu", "cuda"):
        n, m = kdtree_auto.LARGEST[device]
        for data, widths in (("sift", (3, 5, 8, 10, 12, 15, 20, 27)), ("uniform", (2, 3, 5, 8, 10, 15))):
            for d in widths:
                bar = Bar(kdtree_auto.ON, kdtree_auto.WITHIN, most=True, home="")
                found.append(
                    Case(
                        f"auto-{data}-d{d}",
                        device,
                        n,
                        m,
                        d,
                        data=data,
                        bars=(bar,),
                        cost=90 if device == "cpu" else 40,
                        work=kdtree_auto.grid,
                    )
                )
    return found


CASES: tuple[Case, ...] = (*_cpu(), *_cuda(), *_paper(), *_auto())


def chosen(device: str, patterns: Sequence[str] | None) -> list[Case]:
    """Cases for a device that match any pattern, in their own order; SystemExit when a pattern matches none.

    Without patterns all but those of the grid of auto, which takes as long as everything else.
    """
    here = {case.name: case for case in CASES if case.device == device}
    for pattern in patterns or ():
        if not fnmatch.filter(here, pattern):
            raise SystemExit(f"no case matches {pattern!r}; there are: {', '.join(here)}")
    if patterns is None:
        return [case for case in here.values() if case.work is not kdtree_auto.grid]
    return [case for name, case in here.items() if any(fnmatch.fnmatch(name, pattern) for pattern in patterns)]
