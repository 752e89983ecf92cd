"""Claims of komarov2014 (quick multi-select, on a Tesla C2050). Our copy of the paper lacks nearly all numbers."""

# ruff: noqa: RUF001 (tables are written with the signs of mathematics)

from __future__ import annotations

from ....harness.report.results import Where
from .claims import Claim, always, at_most, of_each, replaced, run
from .measures import Measure, best_of, deviation, over, per_row, relative, speed_up

KS = (32, 128, 512)
WAYS = ("quick, warp", "quick, block")
ROWS = tuple(2**i for i in range(4, 15, 2))
NS = tuple(2**i for i in range(11, 17))
INSERTED_KS = tuple(2**i for i in range(5, 10))
INSERTED_NS = tuple(2**i for i in range(13, 17))
INSERTED_ROWS = tuple(2**i for i in range(5, 15))
KINDS = ("uniform", "random", "exponential", "ascending", "descending", "repeated", "sift")
TENTHS = of_each(lambda share: f"{100 * share:.1f} %")
METRICS = ("euclidean", "cosine", "correlation")
GRAPH_NS = tuple(2**i for i in range(13, 17))
GRAPH = {"suite": "exact_cuda", "case": "graph-sift"}


def _at(case: str, series: str, where: Where) -> Where:
    return {"suite": "komarov2014", "device": "cuda", "case": case, "extras.series": series, **where}


def _over(case: str, rival: str, k: int, where: Where) -> Measure:
    """Return a measure: the speed-up of the faster variant of quick multi-select over a rival."""
    theirs = _at(case, f"k = {k}: {rival}", where)
    return best_of(*(speed_up(_at(case, f"k = {k}: {way}", where), theirs) for way in WAYS))


def _shapes(case: str, rival: str) -> Measure:
    return over({f"{m} rows, k = {k}": _over(case, rival, k, {"m": m}) for m in ROWS for k in KS})


def _table(ours: str, theirs: str, ours_k: int, theirs_k: int) -> Measure:
    """Return a measure: the speed-up in table I of tang2015, which has both methods at n = 2^15."""
    return speed_up(
        *(
            {"suite": "tang2015", "device": "cuda", "case": "table-I", "n": 2**15, "extras.series": series, "k": k}
            for series, k in ((ours, ours_k), (theirs, theirs_k))
        )
    )


def _command(case: str) -> str:
    return run(f"komarov2014 --device cuda --case {case}")


TABLE = run("tang2015 --device cuda --case table-I")

CLAIMS = (
    Claim(
        "Faster than the insertion of Garcia et al., n = 2¹⁵, k = 2⁵ to 2⁹",
        "faster (fig. 5, 6; the number is missing from our copy)",
        TABLE,
        over({f"k = {k}": _table("quick, block", "insertion", k, k) for k in (32, 64, 128, 256, 512)}),
        rule=always,
    ),
    Claim(
        "Faster than insertion: 8192 rows of 2¹³ to 2¹⁶ values",
        "faster (fig. 5; numbers and ranges are missing from our copy)",
        _command("fig5"),
        over({f"n = {n}, k = {k}": _over("fig5", "insertion", k, {"n": n}) for n in INSERTED_NS for k in INSERTED_KS}),
        rule=always,
    ),
    Claim(
        "Faster than insertion: 32 to 16384 rows of 2¹⁵ values",
        "faster (fig. 6; numbers and ranges are missing from our copy)",
        _command("fig6"),
        over(
            {f"{m} rows, k = {k}": _over("fig6", "insertion", k, {"m": m}) for m in INSERTED_ROWS for k in INSERTED_KS}
        ),
        rule=always,
    ),
    Claim(
        "The advantage over insertion falls with the number of rows: advantage at 32 rows over that at 8192 rows",
        "falls (fig. 6)",
        _command("fig6"),
        over(
            {f"k = {k}": relative(*(_over("fig6", "insertion", k, {"m": m}) for m in (32, 8192))) for k in INSERTED_KS}
        ),
        rule=always,
    ),
    Claim(
        "Faster than the truncated bitonic sort if rows × n is constant",
        "faster (fig. 7; the number is missing from our copy)",
        _command("fig7"),
        _shapes("fig7", "bitonic"),
        rule=always,
    ),
    Claim(
        "The advantage over the bitonic sort grows with k: advantage at k = 512 over that at k = 32",
        "grows (fig. 7)",
        _command("fig7"),
        over({f"{m} rows": relative(*(_over("fig7", "bitonic", k, {"m": m}) for k in (KS[-1], KS[0]))) for m in ROWS}),
        rule=always,
    ),
    Claim(
        "Faster than radix selection, which processes one row after another in the paper and all rows at once here",
        "faster (fig. 8; the number is missing from our copy)",
        _command("fig8"),
        _shapes("fig8", "radix"),
        rule=always,
    ),
    Claim(
        "The time per row falls until the GPU is full: time per row of 1 to 1024 rows over that of 8192 rows",
        "falls, then is flat (fig. 9)",
        _command("fig9"),
        over(
            {
                f"{m} rows": per_row(*(_at("fig9", "k = 32: quick, block", {"m": count}) for count in (m, 8192)))
                for m in (1, 16, 128, 1024)
            }
        ),
        rule=always,
    ),
    Claim(
        "Faster than `nth_element` on one core; here NumPy's partition",
        "faster (fig. 10; the number is missing from our copy)",
        _command("fig10"),
        over({f"n = {n}, k = {k}": _over("fig10", "numpy", k, {"n": n}) for n in NS for k in KS}),
        rule=always,
    ),
    Claim(
        "The time hardly depends on k: time at k = 2⁹ over time at k = 2⁶",
        "0.23 s over 0.21 s (tang2015, table I)",
        TABLE,
        _table("quick, block", "quick, block", 64, 512),
        0.23 / 0.21,
        at_most,
    ),
    Claim(
        "The time hardly depends on the data: standard deviation over mean; here for seven kinds of data",
        "below 0.5 % (table 2)",
        _command("table-2"),
        over(
            {
                f"k = {k}, {way}": deviation(_at("table-2", f"k = {k}: {way}", {}), "data", KINDS)
                for k in KS
                for way in WAYS
            }
        ),
        0.005,
        at_most,
        TENTHS,
    ),
    Claim(
        "Instead: `threshold` compared with quick multi-select, k = 2⁵ to 2¹⁰",
        "",
        TABLE,
        over({f"k = {k}": _table("threshold", "quick, block", k, k) for k in (32, 64, 128, 256, 512, 1024)}),
        rule=replaced,
    ),
    Claim(
        "Instead: the exact graph compared with float32 products and `torch.topk`, 1,000,000 × 128",
        "",
        run("exact_cuda --device cuda --case graph-sift"),
        speed_up({**GRAPH, "who": "tonari"}, {**GRAPH, "who": "torch float32"}),
        rule=replaced,
    ),
    *(
        Claim(
            f"Instead: the exact graph compared with float32 products and quick multi-select, d = 128: {metric}",
            "",
            _command(f"graph-{metric}"),
            over(
                {
                    f"n = {n}, k = {k}": speed_up(
                        *(
                            {"suite": "komarov2014", "case": f"graph-{metric}", "device": "cuda", "who": who}
                            | {"n": n, "k": k}
                            for who in ("tonari", "products and quick")
                        )
                    )
                    for n in GRAPH_NS
                    for k in KS
                }
            ),
            rule=replaced,
        )
        for metric in METRICS
    ),
)
