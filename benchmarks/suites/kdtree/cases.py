"""The workloads of the k-d tree and their bars; cases that share data follow one another."""

from __future__ import annotations

from typing import Any

from ...harness.case import Bar, Case, Suite
from . import auto, figures, search, stream

MILLION = 1_000_000
TREES = ("pykdtree", "ckdtree")
PAPER_QUERIES = 1_178 * MILLION
STREAM_RATE, HOST_RATE = 1e7, 6e7


def _case(name: str, device: str, n: int, m: int, d: int, k: int = 10, **changes: Any) -> Case:
    defaults: dict[str, Any] = {"data": "sift", "prepared": True, "work": search.search}
    return Case(name, device, n, m, d, k, **defaults | changes)


def _against(pykdtree: float, ckdtree: float = 3.0) -> tuple[Bar, ...]:
    """Return a bar on the speed-up over each of the two peers."""
    return Bar("pykdtree", pykdtree, home=""), Bar("ckdtree", ckdtree, home="")


def _cpu() -> list[Case]:
    bars = {3: 2.0, 5: 2.0, 10: 3.0, 15: 5.0}
    common: dict[str, Any] = {"device": "cpu", "n": MILLION, "m": 200_000, "peers": TREES}
    found = [
        _case(f"sift-d{d}", d=d, bars=_against(bar), exact_rows=8192, cost=60 + 10 * d, **common)
        for d, bar in bars.items()
    ]
    found += [
        _case("sift-d20", d=20, exact_rows=8192, cost=300, **common | {"m": 20_000}),
        _case("magnitudes-d10", d=10, data="magnitudes", bars=_against(3.0), cost=90, **common),
        _case("pixels-d5", d=5, data="pixels", bars=_against(2.0), cost=60, **common),
        _case("uniform-d3", d=3, data="uniform", bars=_against(2.0), cost=60, **common),
    ]
    many: dict[str, Any] = {"device": "cpu", "n": 30_000, "m": 1_000, "peers": TREES}
    found += [
        _case(f"uniform-d3-k{k}", d=3, k=k, data="uniform", bars=_against(2.0, 2.0), cost=5, **many)
        for k in (257, 1000)
    ]
    build = Bar("pykdtree", 1.0, home="")
    built: dict[str, Any] = {"bars": (build,), "work": search.build, "prepared": False, "cost": 60}
    found.append(_case("build-d10", d=10, **built, **common | {"m": 10_000}))
    found.append(
        _case(
            "graph-d3",
            "cpu",
            MILLION,
            MILLION,
            3,
            32,
            data="uniform",
            graph=True,
            cost=120,
            work=search.graph,
            prepared=False,
        )
    )
    for name, work in (("stream", stream.stream), ("stream-file", stream.file_stream)):
        found.append(
            _case(
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
    streamed: dict[str, Any] = {"device": "cuda", "n": 2 * MILLION, "m": PAPER_QUERIES // 10, "d": 10}
    streamed |= {"data": "magnitudes", "chunk": 10 * MILLION}
    bars: dict[int, tuple[Bar, ...]] = {
        5: (_seconds(0.5),),
        10: (_seconds(1.0),),
        15: (_seconds(2.5),),
        20: (),
        # brute force may be faster than the tree here, and auto must then choose it
        27: (Bar("exact over auto", 1 / 1.2),),
    }
    found = [
        _case(f"sift-d{d}", d=d, bars=bar, auto=d > 15, cost=40 if d <= 15 else 90, **common) for d, bar in bars.items()
    ]
    found += [
        _case("magnitudes-d10", d=10, data="magnitudes", bars=(_seconds(1.0),), **common),
        _case("pixels-d5", d=5, data="pixels", bars=(_seconds(0.5),), **common),
        _case("uniform-d3", d=3, data="uniform", **common),
        _case(
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
            work=search.graph,
            prepared=False,
        ),
        _case(
            "build-d10",
            d=10,
            bars=(_seconds(20e-3),),
            work=search.build,
            prepared=False,
            **common | {"n": MILLION, "m": 100_000, "exact_rows": 0},
        ),
        _case(
            "stream",
            **streamed,
            bars=(Bar("on the device", STREAM_RATE), Bar("in host memory", HOST_RATE)),
            cost=60,
            work=stream.stream,
        ),
        _case(
            "stream-file",
            **streamed,
            bars=(Bar("file to file", STREAM_RATE),),
            cost=90,
            work=stream.file_stream,
        ),
        _case(
            "two-gpus",
            **streamed,
            cost=60,
            gpus=2,
            work=stream.several,
        ),
        _case(
            "slabs",
            "cuda",
            16 * MILLION,
            MILLION,
            10,
            data="magnitudes",
            bars=(Bar(search.ANEW, 1.2),),
            cost=60,
            work=search.slabs,
        ),
    ]
    return found


def _auto() -> list[Case]:
    """Return the cases that compare auto with both methods.

    They run only by name, as they take as long as all others together.
    """
    found = []
    for device in ("cpu", "cuda"):
        n, m = auto.LARGEST[device]
        for data, widths, within in (
            ("sift", (3, 5, 8, 10, 12, 15, 20, 27), auto.WITHIN),
            ("uniform", (2, 3, 5, 8, 10, 15), auto.WITHIN),
            ("magnitudes", (4, 7, 10), auto.OTHER_WITHIN),
            ("pixels", (5,), auto.OTHER_WITHIN),
        ):
            for d in widths:
                bar = Bar(auto.ON, within, most=True, home="")
                found.append(
                    _case(
                        f"auto-{data}-d{d}",
                        device,
                        n,
                        m,
                        d,
                        data=data,
                        bars=(bar,),
                        cost=90 if device == "cpu" else 40,
                        work=auto.grid,
                        prepared=False,
                        rare=True,
                    )
                )
    return found


SUITE = Suite(
    "kdtree",
    "kdtree",
    (*_cpu(), *_cuda(), *_auto()),
    libraries=("tonari", "numpy", "scipy", "pykdtree", "torch", "triton"),
    workload=search.workload,
    figures=figures.figures,
)
