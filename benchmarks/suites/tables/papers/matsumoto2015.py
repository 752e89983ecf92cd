"""Claims of matsumoto2015 (TH-heap), which measured image descriptors on a GeForce GTX 780 Ti and four cores."""

# ruff: noqa: RUF001 (tables are written with the signs of mathematics)

from __future__ import annotations

from typing import Any

from ....harness.report.results import Where
from .claims import PERCENT, Claim, always, at_most, replaced, run
from .measures import Measure, counted, missing_of, over, relative, speed_up

DATA = ("sift", "uniform")
SAMPLES = tuple(2**i for i in range(6, 14))
KS = tuple(2**i for i in range(5, 10))
NS = tuple(2**i for i in range(12, 17))
LARGE_NS = (250_000, 500_000, 1_000_000, 2_213_937)
OWN = "the paper's rank"


def _at(case: str, device: str, series: str, more: Where) -> Where:
    return {"suite": "matsumoto2015", "case": case, "device": device, "extras.series": series, **more}


def _timed(case: str, ours: Where, theirs: Where) -> Measure:
    """Return a measure: the speed-up of `ours` over `theirs` in a whole selection on two cores, by kind of data."""
    return over(
        {
            data: speed_up(
                _at(case, "cpu", f"{data}: {ours['parameters.finish']}", ours),
                _at(case, "cpu", f"{data}: {theirs['parameters.finish']}", theirs),
            )
            for data in DATA
        }
    )


def _routed(route: str, m: int) -> Where:
    return {"suite": "exact_cuda", "case": "host-routes", "device": "cuda", "who": f"tonari {route}", "m": m}


def _bitonic(device: str, ours: str, data: str, case: str, **more: Any) -> Measure:
    return speed_up(_at(case, device, f"{data}: {ours}", more), _at(case, device, f"{data}: bitonic", more))


def _ratio(case: str, series: str, name: str, more: Where) -> Measure:
    """Return a measure: the ratio of equation 3 or 4 for the paper's own threshold, from the counters of a run on a
    CPU."""
    return counted(_at(case, "cpu", f"{series}: ratios", {"parameters.finish": "heap", **more}), name)


def _falls(series: str) -> Measure:
    """Return a measure: the share that is pruned at the smallest k, divided by the share at the largest k."""
    return relative(*(_ratio("fig7", series, "compression_ratio", {"k": k}) for k in (KS[0], KS[-1])))


def _apart(data: str, left: int, k: int, ours: str, theirs: str) -> Measure:
    """Return a measure: the ratio of the seconds of two steps that are timed separately."""
    return speed_up(*(_at("finish", "cpu", f"{data}, {left} k left: {step}", {"k": k}) for step in (ours, theirs)))


def _heap(**more: Any) -> Where:
    return {"parameters.finish": "heap", **more}


def _command(case: str, device: str = "") -> str:
    return run(f"matsumoto2015{device and f' --device {device}'} --case {case}")


CLAIMS = (
    Claim(
        "The k-th smallest of only k samples is off the true threshold, k = 64; here for distances of SIFT descriptors",
        "by 25 % (VI-A, fig. 5b)",
        _command("fig5"),
        missing_of(_ratio("fig5", f"sift, {OWN}", "threshold_ratio", {"parameters.samples": 64})),
        0.25,
        at_most,
        PERCENT,
    ),
    Claim(
        "With n_S = 8 k the compression is stable; here how much more it falls with n_S = 512, from k = 32 to 512",
        "“stable” (V-A, eq. 4)",
        _command("fig7"),
        over({data: relative(_falls(f"{data}, {OWN}"), _falls(f"{data}, {OWN}, n_S = 8 k")) for data in DATA}),
        rule=always,
    ),
    Claim(
        "A sample of less than 1 % of the points is faster than a sample of k; here 512 of 65536 points over 64",
        "“significantly” (VI-A, fig. 6)",
        _command("fig6"),
        _timed("fig6", _heap(**{"parameters.samples": 512}), _heap(**{"parameters.samples": 64})),
        rule=always,
    ),
    Claim(
        "Batches of as many queries as cores are faster than single queries",
        "“significant” (VI-A, fig. 9)",
        _command("fig9"),
        _timed("fig9", _heap(**{"parameters.batch": 2}), _heap(**{"parameters.batch": 1})),
        rule=always,
    ),
    Claim(
        "Faster than the truncated bitonic sort: the paper's rank and min-max heap, on two cores",
        "10× or more (VII, fig. 10)",
        _command("fig10"),
        over({f"{data}, n = {n}": _bitonic("cpu", "threshold, heap", data, "fig10", n=n) for data in DATA for n in NS}),
        10,
    ),
    Claim(
        "Faster than the truncated bitonic sort: tonari's rank and halving, on the GPU",
        "10× or more (VII, fig. 12)",
        _command("fig12", "cuda"),
        over(
            {
                f"{data}, {m} queries": _bitonic("cuda", "threshold, halving", data, "fig12", m=m)
                for data in DATA
                for m in (512, 1024, 2000, 2048, 4096, 8192)
            }
        ),
        10,
    ),
    *(
        Claim(
            f"Faster than the bitonic sort at the paper's n, 250,000 to 2,200,000: {ours}, {where}",
            "10× or more (VII, fig. 10)",
            _command("fig10-large", "cuda" if device == "cuda" else ""),
            over(
                {f"n = {n}": _bitonic(device, f"threshold, {finish}", "uniform", "fig10-large", n=n) for n in LARGE_NS}
            ),
            10,
        )
        for device, finish, ours, where in (
            ("cpu", "heap", "the paper's rank and heap", "on two cores"),
            ("cuda", "halving", "tonari's rank and halving", "on the GPU"),
        )
    ),
    Claim(
        "The advantage over the bitonic sort grows with k: advantage at k = 512 over that at k = 32, on two cores",
        "“unaffected by k” (VI-B, fig. 11)",
        _command("fig11"),
        over(
            {
                data: relative(*(_bitonic("cpu", "threshold, heap", data, "fig11", k=k) for k in (KS[-1], KS[0])))
                for data in DATA
            }
        ),
        rule=always,
    ),
    Claim(
        "Sampling and pruning take little time compared with the sort; here their share of the whole, on two cores",
        "“minimal overhead” (VII)",
        _command("finish"),
        over(
            {
                f"{data}, {left} k left, k = {k}": missing_of(_apart(data, left, k, "whole", "heap"))
                for data in DATA
                for left in (8, 16)
                for k in KS
            }
        ),
        0.5,
        at_most,
        PERCENT,
    ),
    Claim(
        "Instead: tonari's rank and halving compared with the paper's rank and min-max heap, on two cores",
        "",
        _command("fig6"),
        over(
            {
                f"n_S = {count}": _timed(
                    "fig6",
                    {"parameters.finish": "halving", "parameters.samples": count},
                    _heap(**{"parameters.samples": count}),
                )
                for count in SAMPLES
            }
        ),
        rule=replaced,
    ),
    Claim(
        "Instead: halving compared with the min-max heap, on the same survivors of the paper's threshold, on two cores",
        "",
        _command("finish"),
        over(
            {
                f"{data}, {left} k left, k = {k}": _apart(data, left, k, "halving", "heap")
                for data in DATA
                for left in (8, 16)
                for k in KS
            }
        ),
        rule=replaced,
    ),
    Claim(
        "Instead: exact search on the GPU compared with the whole of TH-heap, where the GPU prunes and the CPU sorts",
        "",
        _command("search", "cuda"),
        over(
            {
                who: speed_up(
                    {"suite": "matsumoto2015", "case": "search", "who": "tonari"},
                    {"suite": "matsumoto2015", "case": "search", "who": who},
                )
                for who in ("TH-heap, n_S = 512", "TH-heap, n_S = 2048")
            }
        ),
        rule=replaced,
    ),
    Claim(
        "Instead: route `host_refine` (the GPU screens, the CPU refines) compared with streaming the points to the GPU",
        "",
        run("exact_cuda --device cuda --case host-routes"),
        over({f"{m} queries": speed_up(_routed("host_refine", m), _routed("streamed", m)) for m in (16, 256, 4096)}),
        rule=replaced,
    ),
)
