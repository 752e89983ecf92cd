"""The workloads of approximate graphs and what they are held to, in the order in which they share data."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from . import descent_build, descent_curves, descent_merge
from .descent_peers import CUVS, PYNNDESCENT
from .descent_run import DescentRun
from .exact_gpu_rows import Bar

MILLION = 1_000_000


@dataclass(frozen=True)
class Case:
    """One graph of euclidean distances.

    Attributes
    ----------
    device : "cpu" or "cuda"
    data : kind of ``descent_data``
    target : recall that is asked for
    parameters : of the plan, beside what it chooses
    auto : whether method="auto" is timed too
    exact_rows : rows that the exact engine is timed on, where all would take too long; what it takes is scaled to all
    peers : of ``descent_peers``
    peer_settings : with which they are measured too, beside their defaults
    truth_k : largest k that is asked of these data, where that is more than k
    split : points of the first of two graphs that are merged
    cost : seconds that the whole takes on the machine it is for
    """

    name: str
    device: str
    n: int
    d: int
    k: int
    data: str
    dtype: str = "float32"
    target: float = 0.99
    parameters: tuple[tuple[str, Any], ...] = ()
    auto: bool = False
    exact_rows: int = 0
    peers: tuple[str, ...] = ()
    peer_settings: tuple[tuple[tuple[str, Any], ...], ...] = ()
    truth_k: int = 0
    split: int = 0
    bars: tuple[Bar, ...] = ()
    cost: float = 60.0
    work: Callable[[DescentRun, Any], None] = descent_build.build

    def scaled(self, scale: float) -> Case:
        """Fewer points, enough for k all the same."""
        n = max(round(self.n * scale), 4 * max(self.k, self.truth_k))
        return replace(self, n=n, split=round(self.split * n / self.n), exact_rows=round(self.exact_rows * scale))

    def columns(self) -> dict[str, Any]:
        """Columns of the results that say what was asked."""
        names = ("n", "d", "k", "dtype", "data")
        return {"case": self.name} | {name: getattr(self, name) for name in names}


def _bars(home: str, *, at: str, recall: float, seconds: float = 0.0) -> tuple[Bar, ...]:
    """Recall, memory, and seconds where there is a bar on them."""
    bars = Bar(f"recall@{at}", recall, home=home), Bar(descent_build.MEMORY, 1.0, most=True, home=home)
    return (*bars, Bar("seconds", seconds, most=True, home=home)) if seconds else bars


def _cuda() -> list[Case]:
    real: dict[str, Any] = {"device": "cuda", "n": MILLION, "d": 128, "data": "sift"}
    wide: dict[str, Any] = {"device": "cuda", "d": 96, "data": "mixture"}
    cuvs: dict[str, Any] = {"peers": (CUVS,)}
    auto = Bar("auto over the best", 1.2, most=True)
    merged = Bar(descent_merge.OF_WHOLE, 0.5, most=True), Bar(descent_merge.BELOW_WHOLE, 0.003, most=True)
    return [
        Case(
            "sift-1m",
            k=10,
            truth_k=32,
            bars=(*_bars("H100", at="10", recall=0.99, seconds=0.35), auto),
            auto=True,
            **real,
            **cuvs,
        ),
        Case("sift-1m-k32", k=32, bars=_bars("H100", at="k", recall=0.99, seconds=0.6), **real),
        Case("merge-1m", k=10, truth_k=32, split=MILLION // 2, bars=merged, work=descent_merge.merge, **real),
        Case("merge-1k", k=10, split=MILLION, work=descent_merge.merge, **real | {"n": MILLION + 1000}),
        Case("sift-4m", k=10, exact_rows=MILLION // 2, **real | {"n": 4 * MILLION}),
        Case(
            "gist-1m",
            "cuda",
            MILLION,
            960,
            10,
            "gist",
            target=0.95,
            auto=True,
            bars=(*_bars("H100", at="10", recall=0.95, seconds=1.5), auto),
            cost=120,
            **cuvs,
        ),
        Case(
            "clustered-10m",
            n=10 * MILLION,
            k=32,
            exact_rows=MILLION // 5,
            bars=_bars("H100", at="10", recall=0.99, seconds=6),
            cost=120,
            **wide,
        ),
        Case(
            "clustered-50m",
            n=50 * MILLION,
            k=16,
            dtype="float16",
            target=0.95,
            exact_rows=50_000,
            bars=_bars("H100", at="10", recall=0.95, seconds=60),
            cost=240,
            **wide,
        ),
        *_curves("cuda", {"sift": MILLION, "mixture": MILLION, "gist": MILLION, "gaussian": MILLION}, (CUVS,), 240),
    ]


def _cpu() -> list[Case]:
    real: dict[str, Any] = {"device": "cpu", "d": 128, "data": "sift"}
    # By default pynndescent keeps no more neighbours than it is asked for; with more it reaches more recall.
    longer = tuple((("n_neighbors", length),) for length in (20, 24))
    graph: dict[str, Any] = {"k": 15, "target": 0.97, "peers": (PYNNDESCENT,), "peer_settings": longer}
    auto = Bar("auto over the best", 1.2, most=True, home="")

    def bars(ratio: float) -> tuple[Bar, ...]:
        return (*_bars("", at="k", recall=0.97), Bar(PYNNDESCENT, ratio, home=""))

    return [
        Case("sift-100k", n=100_000, bars=(*bars(5), auto), auto=True, cost=120, **real, **graph),
        Case("merge-100k", n=100_000, k=15, target=0.97, split=50_000, work=descent_merge.merge, **real),
        Case("sift-1m", n=MILLION, exact_rows=4096, bars=bars(3), cost=700, **real, **graph),
        *_curves(
            "cpu", {"sift": 100_000, "mixture": 100_000, "gist": 50_000, "gaussian": 100_000}, (PYNNDESCENT,), 400
        ),
    ]


def _curves(device: str, sizes: dict[str, int], peers: tuple[str, ...], cost: float) -> list[Case]:
    widths = {"sift": 128, "mixture": 96, "gist": 960, "gaussian": 32}
    return [
        Case(
            f"curve-{data}",
            device,
            n,
            widths[data],
            10,
            data,
            peers=peers,
            cost=cost,
            work=descent_curves.curve,
        )
        for data, n in sizes.items()
    ]


CASES: tuple[Case, ...] = (*_cuda(), *_cpu())


def chosen(device: str, patterns: Sequence[str] | None) -> list[Case]:
    """Cases for a device that match any pattern, in their own order; SystemExit when a pattern matches none.

    Without patterns all but the curves, which take as long as everything else.
    """
    here = {case.name: case for case in CASES if case.device == device}
    for pattern in patterns or ():
        if not fnmatch.filter(here, pattern):
            raise SystemExit(f"no case matches {pattern!r}; there are: {', '.join(here)}")
    if patterns is None:
        return [case for case in here.values() if case.work is not descent_curves.curve]
    return [case for name, case in here.items() if any(fnmatch.fnmatch(name, pattern) for pattern in patterns)]
