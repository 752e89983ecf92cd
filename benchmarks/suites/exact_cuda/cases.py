"""The workloads of the exact engine on GPUs and their bars, cheapest first."""

from __future__ import annotations

from typing import Any

from ...harness.case import Bar, Case, Suite
from ...harness.peers.cuda import HOST_PEERS, PEERS
from .. import growth
from . import codes, cold, contracted, contracted_host, figures, host, screen, search

# Maximum k for which flashlib is timed: it keeps k neighbours in registers.
FLASH_K = 64
MANY_QUERIES = 256  # number of single queries that are verified; only the first of them is timed
ALL = tuple(PEERS)
WITHOUT_FLASH = tuple(name for name in ALL if not name.startswith("flash"))
SOME = ("torch float32", "cuvs", "flash float32")


def _case(name: str, n: int, m: int, d: int, k: int = 10, **changes: Any) -> Case:
    defaults: dict[str, Any] = {"peers": ALL, "cost": 15.0, "work": search.search}
    return Case(name, "cuda", n, m, d, k, **defaults | changes)


def seconds(bound: float, home: str = "H100") -> Bar:
    """Return the bar "at most `bound` seconds"."""
    return Bar("seconds", bound, most=True, home=home)


MILLION = 1_000_000
TEN_THOUSAND = 10_000


def _searches() -> list[Case]:
    bars = {10: 7.5e-3, 64: 10e-3, 256: 18e-3, 1024: 45e-3}
    return [
        _case(
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


def _one_shot() -> list[Case]:
    """Return searches for k = 10 that pack the points within the call and, for integers, also with prepared points."""
    kinds = {"gaussian": "gaussian", "half": "bytes + half", "noise": "bytes + noise"}
    changes: dict[str, Any] = {"peers": ()}
    once = [
        _case(f"search-k10-once-{name}", MILLION, TEN_THOUSAND, 128, data=kind, bars=(seconds(7.5e-3),), **changes)
        for name, kind in kinds.items()
    ]
    changes |= {"prepared": True, "bars": (seconds(6.2e-3),)}
    return once + [
        _case(f"search-k10-{name}", MILLION, TEN_THOUSAND, 128, data=kind, **changes)
        for name, kind in kinds.items()
        if name != "gaussian"
    ]


def _cold() -> list[Case]:
    """Return cases of first calls: small and large k, hard rows, integers, graphs by each method, a single query."""
    wanted = {"k10": (10, "gaussian", 3.0), "k256": (256, "gaussian", 3.0), "tight": (10, "tight", 3.0)}
    changes: dict[str, Any] = {"peers": (), "work": cold.cold_start, "cost": 60.0}
    cases = [
        _case(f"cold-{name}", MILLION, TEN_THOUSAND, 128, k, data=kind, bars=(seconds(bar, "H200"),), **changes)
        for name, (k, kind, bar) in wanted.items()
    ]
    changes["bars"] = (seconds(4.0),)
    graph = changes | {"graph": True}
    return [
        *cases,
        _case("cold-half", MILLION, TEN_THOUSAND, 128, data="bytes + half", **changes),
        _case("cold-index", MILLION, 1, 128, prepared=True, **changes),
        _case("cold-graph", MILLION, MILLION, 128, **graph),
        _case("cold-graph-bytes", MILLION, MILLION, 128, 15, data="bytes + half", **graph),
        _case("cold-descent", MILLION, MILLION, 128, 15, data="mixture", target=0.95, **graph),
        _case("cold-tree", MILLION, MILLION, 3, 15, **graph),
    ]


def _low(d: int) -> Case:
    bars = (Bar("pairs/s in the screen", 3e12), seconds(6e-3))
    return _case(f"search-d{d}", MILLION, TEN_THOUSAND, d, screened=True, bars=bars)


def _hard() -> list[Case]:
    kinds = {"offset-1e3": "offset 1e3", "offset-1e6": "offset 1e6", "tight": "tight"}
    kinds |= {"copies-16": "copies 16", "copies": "copies"}
    return [
        _case(f"hard-{name}", MILLION, TEN_THOUSAND, 128, data=kind, peers=SOME, cost=20.0)
        for name, kind in kinds.items()
    ]


def _contracted(kind: str, m: int, d: int, **changes: Any) -> Case:
    name = f"contracted-{'graph-' if changes.get('graph') else ''}{kind.replace(' ', '-')}"
    return _case(name, MILLION, m, d, data=kind, peers=(), gigabytes=30.0, work=contracted.contracted, **changes)


def _in_host_memory(name: str, millions: int, **changes: Any) -> Case:
    """Return the search of points in host memory by contracted rows on the device.

    The bar is twice the time of searching the contracted rows alone.
    """
    bars = (Bar(contracted_host.OF_RESIDENT, 2.0, most=True, home=""),)
    options: dict[str, Any] = {
        "data": "few directions",
        "dtype": "float16",
        "prepared": True,
        "peers": (),
        "bars": bars,
    }
    options |= {"warm_scale": 0.1, "work": contracted_host.contracted_host}
    return _case(name, millions * MILLION, 1000, 768, **options | changes)


def _codes(name: str, millions: int, d: int, rate: float, **changes: Any) -> Case:
    """Return the search of rows of bytes in host memory by their codes on a device with 80 GB."""
    bars = (Bar(codes.RATE, rate), Bar(codes.DEVICE_BYTES, 72e9, most=True, home=""))
    options: dict[str, Any] = {"data": "synthesized bytes", "dtype": "uint8", "prepared": True}
    options |= {"peers": tuple(HOST_PEERS) if "gpus" not in changes else ()}
    options |= {"bars": bars, "warm_scale": 0.01, "work": codes.codes}
    return _case(name, millions * MILLION, 8192, d, **options | changes)


GRID = tuple((8192, d) for d in (16, 32, 64, 96, 128, 256, 512, 768, 1024))
GRID += tuple((m, 128) for m in (1, 16, 64, 256, 1024, 2048, 4096, 16384))

SUITE = Suite(
    "exact_cuda",
    "exact_cuda",
    (
        _case(
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
        *_one_shot(),
        _case("screen", 1 << 20, 8192, 128, grid=GRID, cost=20.0, gigabytes=16.0, work=screen.sweep),
        _case("cpu-bits", 50_000, host.BITS_ROWS, 100, 20, cost=20.0, work=host.bits),
        *_hard(),
        _case(
            "one-query",
            10 * MILLION,
            1,
            128,
            asked=MANY_QUERIES,
            prepared=True,
            bars=(Bar("of copy", 0.7),),
            cost=25.0,
            gigabytes=12.0,
        ),
        _contracted("patches", TEN_THOUSAND, 768, cost=40.0),
        _codes("codes-10m", 10, 128, 250_000.0, cost=40.0),
        _case("graph-gauss", MILLION, MILLION, 128, graph=True, bars=(seconds(0.65),), cost=40.0),
        _case("graph-sift", MILLION, MILLION, 128, data="sift", graph=True, bars=(seconds(0.65),), cost=60.0),
        *(_case(name, peers=SOME, cost=60.0, **shape) for name, shape in growth.shapes(growth.ON_CUDA)),
        *_cold(),
        _case(
            "host-routes",
            8 * MILLION,
            4096,
            128,
            bars=(Bar(host.BETTER, 1.15, most=True, home=""),),
            peers=(),
            cost=60.0,
            gigabytes=12.0,
            work=host.routes,
        ),
        _case(
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
            work=host.several,
        ),
        _case(
            "search-two-gpus",
            4 * MILLION,
            TEN_THOUSAND,
            96,
            bars=(Bar("speed-up", 1.7, home=""),),
            cost=60.0,
            gigabytes=12.0,
            gpus=2,
            work=host.several,
        ),
        _in_host_memory("contracted-host-6m", 6, cost=60.0, gigabytes=20.0),
        _codes("codes-100m", 100, 128, 30_000.0, cost=60.0, gigabytes=20.0),
        _contracted("topics", MILLION, 768, cost=60.0, graph=True, bars=(seconds(1.4, "H200"),)),
        _contracted("patches", MILLION, 768, cost=60.0, graph=True, bars=(seconds(1.0, "H200"),)),
        _contracted("slow topics", MILLION, 768, cost=60.0, graph=True, bars=(seconds(2.2, "H200"),)),
        _contracted(
            "topics", TEN_THOUSAND, 768, cost=62.0, prepared=True, metric="cosine", bars=(seconds(14e-3, "H200"),)
        ),
        _contracted("gaussian", 10 * TEN_THOUSAND, 768, cost=70.0, bars=(Bar("of full", 1.03, most=True, home=""),)),
        _case(
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
        _case(
            "streamed",
            20 * MILLION,
            100_000,
            128,
            bars=(
                Bar("of resident or PCIe", 0.8, home=""),
                Bar("device bytes", host.BUDGET_BYTES, most=True, home=""),
            ),
            peers=(),
            cost=90.0,
            gigabytes=24.0,
            work=host.streamed,
        ),
        _contracted("gist", MILLION, 960, cost=120.0, graph=True, bars=(seconds(1.5, "H200"),)),
        _in_host_memory("contracted-host", 60, cost=200.0, gigabytes=80.0, rare=True),
        _codes("codes-500m", 500, 128, 6000.0, cost=200.0, gigabytes=70.0, rare=True),
        _codes("codes-500m-two", 500, 128, 10_800.0, cost=200.0, gigabytes=40.0, gpus=2, rare=True),
        _case(
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
        _codes("codes-1000m-two", 1000, 96, 2000.0, cost=350.0, gigabytes=70.0, gpus=2, rare=True),
    ),
    libraries=("tonari", "numpy", "torch", "triton", "cuvs-cu13", "flashlib", "certex"),
    repeats=7,
    peer_seconds=1.0,
    workload=cold.workload,
    figures=figures.figures,
)
