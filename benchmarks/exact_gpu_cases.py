"""The workloads of the exact engine on GPUs and what they are held to, cheapest first."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from . import exact_gpu_host, exact_gpu_screen, exact_gpu_search, exact_matsumoto2015
from .exact_gpu_peers import PEERS
from .exact_gpu_rows import Bar
from .exact_gpu_run import Run

# flashlib keeps k neighbours in registers: beyond this many it is no tool for the job.
FLASH_K = 64
MANY_QUERIES = 256  # of which the first is timed
ALL = tuple(PEERS)
WITHOUT_FLASH = tuple(name for name in ALL if not name.startswith("flash"))
SOME = ("torch float32", "cuvs", "flash float32")


@dataclass(frozen=True)
class Case:
    """One workload of euclidean distances between float32 rows.

    Attributes
    ----------
    m : queries; 1 for single ones, of which many are proved
    graph : the queries are the points, and no point finds itself
    data : kind of ``exact_gpu_data``
    prepared : the index is made before the clock starts
    loops : calls back to back whose time is shared out, where one is too short for a clock
    screened : the screen alone is timed too
    truth_k : largest k of the cases that share this data and its proof
    grid : (m, d) of a sweep
    cost : seconds that the whole takes on an H100, peers included
    gigabytes : of the device, without peers
    warm_scale : part of the points with which a warm-up compiles what the whole needs
    """

    name: str
    n: int
    m: int
    d: int
    k: int = 10
    data: str = "gaussian"
    graph: bool = False
    prepared: bool = False
    loops: int = 1
    screened: bool = False
    truth_k: int = 0
    grid: tuple[tuple[int, int], ...] = ()
    bars: tuple[Bar, ...] = ()
    peers: tuple[str, ...] = ALL
    cost: float = 15.0
    gigabytes: float = 5.0
    gpus: int = 1
    warm_scale: float = 1.0
    work: Callable[[Run, Any], None] = exact_gpu_search.search

    @property
    def single(self) -> bool:
        """Whether queries come one at a time."""
        return self.m == 1

    @property
    def queries(self) -> int:
        """Queries to make."""
        return 0 if self.graph else MANY_QUERIES if self.single else self.m

    def resized(self, *, m: int, d: int) -> Case:
        """Another number of queries and dimensions."""
        return replace(self, m=m, d=d)

    def scaled(self, scale: float) -> Case:
        """Fewer points and queries, enough for k all the same; a graph then has as many queries as points."""
        n = max(round(self.n * scale), 2 * max(self.k, self.truth_k))
        m = n if self.graph else 1 if self.single else max(2, round(self.m * scale))
        grid = tuple((max(1, round(m * scale)), d) for m, d in self.grid)
        return replace(self, n=n, m=m, grid=grid)

    def columns(self) -> dict[str, Any]:
        """Columns of the results that say what was asked."""
        names = ("n", "m", "d", "k", "data", "prepared")
        return {"case": self.name, "dtype": "float32"} | {name: getattr(self, name) for name in names}


def seconds(bound: float, home: str = "H100") -> Bar:
    """At most so many."""
    return Bar("seconds", bound, most=True, home=home)


MILLION = 1_000_000
TEN_THOUSAND = 10_000


def _searches() -> list[Case]:
    bars = {10: 7.5e-3, 64: 10e-3, 256: 18e-3, 1024: 45e-3}
    return [
        Case(
            f"search-k{k}",
            MILLION,
            TEN_THOUSAND,
            128,
            k,
            prepared=True,
            truth_k=max(bars),
            bars=(seconds(bound),),
            peers=ALL if k <= FLASH_K else WITHOUT_FLASH,
        )
        for k, bound in bars.items()
    ]


def _low(d: int) -> Case:
    bars = (Bar("pairs/s in the screen", 3e12), seconds(6e-3))
    return Case(f"search-d{d}", MILLION, TEN_THOUSAND, d, screened=True, bars=bars)


def _hard() -> list[Case]:
    kinds = {"offset-1e3": "offset 1e3", "offset-1e6": "offset 1e6", "tight": "tight"}
    kinds |= {"copies-16": "copies 16", "copies": "copies"}
    return [
        Case(f"hard-{name}", MILLION, TEN_THOUSAND, 128, data=kind, peers=SOME, cost=20.0)
        for name, kind in kinds.items()
    ]


GRID = tuple((8192, d) for d in (16, 32, 64, 96, 128, 256, 512, 768, 1024))
GRID += tuple((m, 128) for m in (1, 16, 64, 256, 1024, 2048, 4096, 16384))

CASES: dict[str, Case] = {
    case.name: case
    for case in (
        Case(
            "small",
            TEN_THOUSAND,
            1000,
            64,
            loops=100,
            bars=(seconds(0.15e-3), Bar("torch", 1.0)),
            cost=8.0,
            gigabytes=1.0,
        ),
        *(_low(d) for d in (16, 32)),
        *_searches(),
        Case("screen", 1 << 20, 8192, 128, grid=GRID, cost=20.0, gigabytes=16.0, work=exact_gpu_screen.sweep),
        Case("cpu-bits", 50_000, exact_gpu_host.BITS_ROWS, 100, 20, cost=20.0, work=exact_gpu_host.bits),
        *_hard(),
        Case(
            "one-query",
            10 * MILLION,
            1,
            128,
            prepared=True,
            bars=(Bar("of copy", 0.7),),
            cost=25.0,
            gigabytes=12.0,
        ),
        Case("graph-gauss", MILLION, MILLION, 128, graph=True, bars=(seconds(0.65),), cost=40.0),
        Case(
            "matsumoto2015",
            MILLION,
            8192,
            128,
            64,
            data="sift",
            cost=40.0,
            work=exact_matsumoto2015.compare,
        ),
        Case("graph-sift", MILLION, MILLION, 128, data="sift", graph=True, bars=(seconds(0.65),), cost=60.0),
        Case(
            "two-gpus",
            4 * MILLION,
            4 * MILLION,
            128,
            graph=True,
            data="mixture",
            bars=(Bar("speed-up", 1.85, home=""),),
            cost=60.0,
            gigabytes=12.0,
            gpus=2,
            warm_scale=0.1,
            work=exact_gpu_host.several,
        ),
        Case(
            "graph-960",
            MILLION,
            MILLION,
            960,
            data="mixture",
            graph=True,
            bars=(seconds(4.5),),
            cost=80.0,
            gigabytes=12.0,
        ),
        Case(
            "streamed",
            20 * MILLION,
            100_000,
            128,
            bars=(
                Bar("of resident or PCIe", 0.8, home=""),
                Bar("device bytes", exact_gpu_host.BUDGET_BYTES, most=True, home=""),
            ),
            peers=(),
            cost=90.0,
            gigabytes=24.0,
            work=exact_gpu_host.streamed,
        ),
        Case(
            "graph-10m",
            10 * MILLION,
            10 * MILLION,
            96,
            32,
            graph=True,
            data="mixture",
            bars=(seconds(60.0),),
            cost=240.0,
            gigabytes=16.0,
            warm_scale=0.05,
        ),
    )
}


def chosen(patterns: Sequence[str] | None) -> list[Case]:
    """Cases that match any pattern, in their own order; SystemExit when a pattern matches none."""
    for pattern in patterns or ():
        if not fnmatch.filter(CASES, pattern):
            raise SystemExit(f"no case matches {pattern!r}; there are: {', '.join(CASES)}")
    return [case for name, case in CASES.items() if any(fnmatch.fnmatch(name, p) for p in patterns or ["*"])]
