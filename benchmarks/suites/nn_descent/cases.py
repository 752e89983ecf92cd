"""The workloads of approximate graphs and their bars; cases that share data follow one another."""

from __future__ import annotations

from typing import Any

from ...harness.case import Bar, Case, Suite
from ...harness.peers.graphs import CUVS, PYNNDESCENT
from . import build, curves, figures, merge

MILLION = 1_000_000


def _case(name: str, device: str, n: int, d: int, k: int, data: str, **changes: Any) -> Case:
    defaults: dict[str, Any] = {"target": 0.99, "graph": True, "cost": 60.0, "work": build.build}
    return Case(name, device, n, n, d, k, data=data, **defaults | changes)


def _bars(home: str, *, at: str, recall: float, seconds: float = 0.0) -> tuple[Bar, ...]:
    """Return bars on recall, on memory, and on seconds if a bound is given."""
    bars = Bar(f"recall@{at}", recall, home=home), Bar(build.MEMORY, 1.0, most=True, home=home)
    return (*bars, Bar("seconds", seconds, most=True, home=home)) if seconds else bars


def _cuda() -> list[Case]:
    real: dict[str, Any] = {"device": "cuda", "n": MILLION, "d": 128, "data": "sift"}
    wide: dict[str, Any] = {"device": "cuda", "d": 96, "data": "mixture"}
    cuvs: dict[str, Any] = {"peers": (CUVS,)}
    auto = Bar("auto over the best", 1.2, most=True)
    merged = Bar(merge.OF_WHOLE, 0.5, most=True), Bar(merge.BELOW_WHOLE, 0.003, most=True)
    return [
        _case(
            "sift-1m",
            k=10,
            truth_k=32,
            bars=(*_bars("H100", at="10", recall=0.99, seconds=0.35), auto),
            auto=True,
            **real,
            **cuvs,
        ),
        _case("sift-1m-k32", k=32, bars=_bars("H100", at="k", recall=0.99, seconds=0.6), **real),
        _case("merge-1m", k=10, truth_k=32, split=MILLION // 2, bars=merged, work=merge.merge, **real),
        _case("merge-1k", k=10, split=MILLION, work=merge.merge, **real | {"n": MILLION + 1000}),
        _case("sift-4m", k=10, exact_rows=MILLION // 2, **real | {"n": 4 * MILLION}),
        _case(
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
        _case(
            "clustered-10m",
            n=10 * MILLION,
            k=32,
            exact_rows=MILLION // 5,
            bars=_bars("H100", at="10", recall=0.99, seconds=6),
            cost=120,
            **wide,
        ),
        _case(
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
    # by default, pynndescent keeps k neighbours per point; longer lists reach a higher recall
    longer = tuple({"n_neighbors": length} for length in (20, 24))
    graph: dict[str, Any] = {"k": 15, "target": 0.97, "peers": (PYNNDESCENT,), "peer_settings": longer}
    auto = Bar("auto over the best", 1.2, most=True, home="")

    def bars(ratio: float) -> tuple[Bar, ...]:
        return (*_bars("", at="k", recall=0.97), Bar(PYNNDESCENT, ratio, home=""))

    return [
        _case("sift-100k", n=100_000, bars=(*bars(5), auto), auto=True, cost=120, **real, **graph),
        _case("merge-100k", n=100_000, k=15, target=0.97, split=50_000, work=merge.merge, **real),
        _case("sift-1m", n=MILLION, exact_rows=4096, bars=bars(3), cost=700, **real, **graph),
        *_curves(
            "cpu", {"sift": 100_000, "mixture": 100_000, "gist": 50_000, "gaussian": 100_000}, (PYNNDESCENT,), 400
        ),
    ]


def _curves(device: str, sizes: dict[str, int], peers: tuple[str, ...], cost: float) -> list[Case]:
    widths = {"sift": 128, "mixture": 96, "gist": 960, "gaussian": 32}
    return [
        _case(
            f"curve-{data}",
            device,
            n,
            widths[data],
            10,
            data,
            peers=peers,
            cost=cost,
            work=curves.curve,
            rare=True,
        )
        for data, n in sizes.items()
    ]


SUITE = Suite(
    "nn_descent",
    "nn_descent",
    (*_cuda(), *_cpu()),
    libraries=("tonari", "numpy", "pynndescent", "numba", "torch", "triton", "cuvs-cu13"),
    workload=build.workload,
    figures=figures.figures,
)
