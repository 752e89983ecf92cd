"""Tables about select_k, compared with torch.topk and NumPy, and the tables of tang2015."""

# ruff: noqa: RUF001 (tables are written with the signs of mathematics)

from __future__ import annotations

from collections.abc import Sequence

from ...harness.report.cells import (
    Kind,
    against,
    asking,
    bars_kept,
    joined,
    largest_value,
    number,
    seconds,
    share,
    share_of,
    text,
    times,
)
from ...harness.report.table import Column, Line, Table
from ..select import few
from .machines import EPYC_AVX512, H100, H200

AUTO = {"suite": "select", "who": "tonari"}
TOPK = {"who": "torch.topk", "parameters.nan": None}
POWERS = {
    2**10: "2¹⁰",
    2**13: "2¹³",
    2**15: "2¹⁵",
    2**17: "2¹⁷",
    2**20: "2²⁰",
    2**22: "2²²",
    2**24: "2²⁴",
    2**26: "2²⁶",
    2**28: "2²⁸",
}
TERABYTES = number("extras.gbps", lambda found: f"{found / 1e3:.2f}")
GIGABYTES = number("extras.gbps", ".1f")


def _shape(m: int, n: int) -> str:
    return f"{m:,} × {POWERS[n]}" if m >= 10_000 else f"{m} × {POWERS[n]}"


def _bars(m: int, n: int, ks: Sequence[int]) -> list[Line]:
    """Return the lines of a table about one shape, with one line for each k."""
    return [Line(f"{_shape(m, n)}, k = {k}" if k == ks[0] else f"k = {k}", {"case": f"bars-{m}x{n}-k{k}"}) for k in ks]


BARS = (
    *((m, 2**20, (10, 256, 2048)) for m in (8192, 2048)),
    *((m, 2**17, (10, 256, 2048)) for m in (8192, 2048)),
    (8192, 2**15, (10, 64, 256, 512, 1024, 2048)),
    (2048, 2**15, (10, 64, 256)),
    *((m, 2**24, (10, 1024)) for m in (16, 4, 1)),
    (8192, 2**13, (10, 64)),
    (8192, 2**10, (10, 64)),
)
CPU_KS = (32, 64, 128, 256, 512, 1024)
ORDERS = {"equal leading bits": "leading", "ascending": "ascending", "descending": "descending", "all equal": "equal"}

TOPK_SHAPES = (
    (1, 2**26, 10),
    (1, 2**26, 65536),
    (1, 2**28, 10),
    (1, 2**28, 65536),
    (2, 2**26, 10),
    (2048, 2**20, 10),
    (2048, 2**17, 20000),
    (2048, 2**17, 65536),
    (128, 2**24, 20000),
    (32768, 2**13, 4096),
    (1000000, 2**10, 256),
)


def _in_order(stage: str) -> Kind:
    return joined(asking(seconds(), who="tonari", stage=stage), asking(seconds(), who="torch.topk", stage=stage))


# The name of a series in rows of results, by its line of table I in our table.
SERIES = {
    "insertion": "insertion",
    "heap": "heap",
    "merge": "merge",
    "merge, aligned": "merge, aligned",
    "insertion, buffer + HP": "insertion, full buffer, G = 4",
    "heap, buffer + HP": "heap, full buffer, G = 4",
    "merge, aligned, buffer + HP": "merge, aligned, full buffer, G = 4",
    "bitonic": "truncated bitonic sort",
    "quick, block": "quick multi-select (block)",
    "hierarchical": "hierarchical, alone",
    "threshold": "threshold",
    "radix": "radix",
    "torch.topk": "torch.topk",
}
# Seconds on the paper's Tesla C2075 at k = 256, as printed in the paper.
PAPER = dict(
    zip(
        SERIES, ("3.56 s", "0.41 s", "2.24 s", "0.29 s", "0.24 s", "0.15 s", "0.14 s", "0.53 s", "0.22 s"), strict=False
    )
)
KS = (32, 64, 128, 256, 512, 1024)
UPDATES = number("extras.counters", lambda found: f"{found['updates']:,.0f}")

TOPK_ALONE = {"who": "torch.topk"}
# (rows, n, k, order) of the cells that are slowest, compared with torch.topk
SLOWEST = (
    (16, 64, 64, "in any order"),
    (1, 8192, 8192, "in any order"),
    (1, 64, 64, "in any order"),
    (128, 64, 64, "in any order"),
    (2048, 64, 1, "in order"),
    (16, 64, 1, "in order"),
)
FEW = tuple((m, n) for m in few.ROWS for n in few.COLUMNS)
COMPRESSION = number("extras.counters", lambda found: f"{found['compression_ratio']:.1f}")
SAMPLES = (64, 128, 256, 512, 1024, 2048, 4096, 8192)
WAYS = ("bitonic", "quick, warp", "quick, block")

TABLES: dict[str, Table] = {
    "select-h100": Table(
        where={**AUTO, **H100},
        head="rows × n",
        columns=(
            Column("graph, TB/s", TERABYTES, {"parameters.nan": "graph"}),
            Column("over `torch.topk`", times(**TOPK), {"parameters.nan": "graph"}),
            Column("call, TB/s", TERABYTES, {"parameters.nan": "last"}),
            Column("over `torch.topk`", times(**TOPK), {"parameters.nan": "last"}),
            Column("default call, TB/s", TERABYTES, {"parameters.nan": "refuse"}),
        ),
        lines=[line for m, n, ks in BARS for line in _bars(m, n, ks)],
    ),
    "select-h100-orders": Table(
        where={**AUTO, **H100, "parameters.nan": "graph"},
        head="4096 × 2¹⁷, k = 64",
        columns=(Column("speed relative to random data", number("value", ".2f"), {"bar_on": "random"}),),
        lines=[Line(label, {"case": f"bars-4096x131072-k64-{name}"}) for label, name in ORDERS.items()],
    ),
    "select-epyc": Table(
        where={**AUTO, **EPYC_AVX512, "parameters.nan": "refuse"},
        head="8192 × 2¹⁵, k",
        columns=tuple(Column(str(k), GIGABYTES, {"case": f"bars-8192x32768-k{k}"}) for k in CPU_KS),
        lines=(
            Line("input read, GB/s"),
            Line(
                "share of the rate at which memory is read",
                {},
                {str(k): share_of("extras.gbps", "extras.read_gbps") for k in CPU_KS},
            ),
            Line("speed-up over `torch.topk`", {}, {str(k): times(**TOPK) for k in CPU_KS}),
            Line(
                "speed-up over NumPy, on one core",
                {},
                {str(k): times(who="numpy", **{"parameters.nan": None}) for k in CPU_KS},
            ),
        ),
    ),
    "select-epyc-orders": Table(
        where={**AUTO, **EPYC_AVX512, "parameters.nan": "refuse"},
        head="8192 × 2¹⁵, k = 64",
        columns=(Column("speed relative to random data", number("value", ".2f"), {"bar_on": "random"}),),
        lines=[Line(label, {"case": f"bars-8192x32768-k64-{name}"}) for label, name in ORDERS.items()],
    ),
    "select-topk": Table(
        where={"suite": "select", "case": "topk", **H200},
        head="rows × n, k: `select_k` / `torch.topk`",
        columns=(Column("in order", _in_order("in order")), Column("in any order", _in_order("in any order"))),
        lines=[Line(f"{_shape(m, n)}, k = {k:,}", {"m": m, "n": n, "k": k}) for m, n, k in TOPK_SHAPES],
    ),
    "select-few": Table(
        where={**AUTO, **H200, "parameters.nan": "graph"},
        head="rows × n: float32 / bfloat16",
        columns=tuple(
            Column(
                f"k = {k:,}",
                joined(*(asking(times(**TOPK), k=k, case="few-*", dtype=dtype) for dtype in few.DTYPES)),
            )
            for k in few.SIZES_K
        ),
        lines=tuple(Line(_shape(m, n), {"m": m, "n": n}) for m, n in FEW),
    ),
    "select-bars": Table(
        where={**AUTO, "case": "bars-*"},
        columns=(
            Column("targets for the rate of reading", bars_kept(), {"bar_on": ("GB/s", "read")}),
            Column("for the speed-up over `torch.topk`", bars_kept(), {"bar_on": "torch.topk"}),
            Column("for the speed-up over NumPy", bars_kept(), {"bar_on": "numpy"}, sparse=True),
            Column("for other orders of the data", bars_kept(), {"bar_on": "random"}),
        ),
        lines=(
            *(
                Line(f"H100, {label}", {**H100, "parameters.nan": nan})
                for label, nan in (("graph", "graph"), ('`nan="last"`', "last"), ("the default", "refuse"))
            ),
            Line("EPYC, the default", {**EPYC_AVX512, "parameters.nan": "refuse"}),
        ),
    ),
    "select-topk-kept": Table(
        where={**AUTO, **H200, "case": "topk", "bar_on": "torch.topk"},
        columns=(
            Column("at most 1.5 times the time of `torch.topk`", bars_kept()),
            Column("largest ratio", largest_value(".1f")),
        ),
        lines=(Line("in order", {"stage": "in order"}), Line("in any order", {"stage": "in any order"})),
    ),
    "select-auto": Table(
        where={**AUTO, "case": "grid-float32", "bar_on": "best named"},
        columns=(
            Column("at most 1.1 times the best named method", bars_kept()),
            Column("largest ratio", largest_value()),
        ),
        lines=(
            Line("H100, with a table learnt from another grid", {**H100, "commit": "5e3f121"}),
            Line("EPYC, without a table", {**EPYC_AVX512, "commit": "8c74f97"}),
            Line(
                "EPYC, shapes of another grid (n below 2²⁰), with the shipped table",
                {**EPYC_AVX512, "commit": "d7d7bdc"},
            ),
        ),
    ),
    "tang2015-fig5": Table(
        where={"suite": "tang2015", "case": "fig5", "n": 2**15, **H100},
        head="k",
        columns=tuple(
            Column(name, UPDATES, {"extras.series": name}) for name in ("insertion", "heap", "merge", "merge, aligned")
        ),
        lines=tuple(Line(str(k), {"k": k}) for k in (32, 256, 1024)),
    ),
    "tang2015-table1": Table(
        where={"suite": "tang2015", "case": "table-I", "n": 2**15, **H100},
        columns=(
            *(Column(f"k = {k}", seconds(), {"k": k}, sparse=True) for k in KS),
            Column("the paper, k = 256", text("")),
        ),
        lines=tuple(
            Line(
                label,
                {"extras.series": series} if series != "torch.topk" else {"who": series},
                {"the paper, k = 256": text(PAPER.get(series, ""))},
            )
            for series, label in SERIES.items()
        ),
    ),
    "tang2015-table1-epyc": Table(
        where={"suite": "tang2015", "case": "table-I", "n": 2**15, **EPYC_AVX512},
        columns=tuple(Column(f"k = {k}", seconds(), {"k": k}, sparse=True) for k in KS),
        lines=tuple(Line(label, {"extras.series": series}) for series, label in list(SERIES.items())[:7]),
    ),
    "select-topk-slowest": Table(
        where={**AUTO, "case": "topk", **H200},
        head="rows × n, k",
        columns=(
            Column("order", text("")),
            Column("`select_k`", seconds()),
            Column("`torch.topk`", asking(seconds(), who="torch.topk")),
            Column("ratio", share(**TOPK_ALONE)),
        ),
        lines=[
            Line(f"{m} × {n}, k = {k:,}", {"m": m, "n": n, "k": k, "stage": stage}, {"order": text(stage)})
            for m, n, k, stage in SLOWEST
        ],
    ),
    "matsumoto2015-heap": Table(
        where={"suite": "matsumoto2015", "case": "fig6", "n": 2**16, **EPYC_AVX512},
        head="samples",
        columns=tuple(Column(str(count), seconds(), {"parameters.samples": count}) for count in SAMPLES),
        lines=tuple(
            Line(f"{data}, {label}", {"data": data, "parameters.finish": finish})
            for data in ("sift", "uniform")
            for label, finish in (("the paper's rank, min-max heap", "heap"), ("tonari's rank, halving", "halving"))
        ),
    ),
    "matsumoto2015-bitonic": Table(
        where={"suite": "matsumoto2015", "case": "fig12", **H100},
        columns=(
            Column("threshold, halving", seconds(), {"extras.series": "*: threshold, halving"}),
            Column(
                "truncated bitonic sort",
                against(**{"extras.series": "*: bitonic"}),
                {"extras.series": "*: threshold, halving"},
            ),
        ),
        lines=(
            Line("SIFT, 512 × 8000", {"data": "sift", "m": 512}),
            Line("uniform, 512 × 65536", {"data": "uniform", "m": 512}),
            Line("uniform, 8192 × 65536", {"data": "uniform", "m": 8192}),
        ),
    ),
    "komarov2014-fig7": Table(
        where={"suite": "komarov2014", "case": "fig7", **H100},
        head="rows × n: bitonic / quick, warp / quick, block",
        columns=tuple(
            Column(
                f"k = {k}",
                joined(*(asking(seconds(), **{"extras.series": f"k = {k}: {way}"}) for way in WAYS)),
                {"k": k},
            )
            for k in (32, 128, 512)
        ),
        lines=tuple(Line(f"{m} × {2**26 // m}", {"m": m}) for m in (16, 64, 256, 1024, 4096, 16384)),
    ),
    "matsumoto2015-fig5": Table(
        where={"suite": "matsumoto2015", "case": "fig5", **H100},
        head="number of samples; points per survivor",
        columns=tuple(Column(str(count), COMPRESSION, {"parameters.samples": count}) for count in SAMPLES[2:7]),
        lines=(
            Line("SIFT, 512 × 8000, k = 64", {"data": "sift"}),
            Line("uniform, 512 × 65536, k = 64", {"data": "uniform"}),
        ),
    ),
    "komarov2014-fig9": Table(
        where={"suite": "komarov2014", "case": "fig9", "n": 2**15, "k": 32, **H100},
        head="rows of 2¹⁵, k = 32",
        columns=tuple(Column(str(m), seconds(), {"m": m}) for m in (1, 64, 128, 256, 512, 1024, 2048, 8192)),
        lines=tuple(Line(way, {"extras.series": f"k = 32: {way}"}) for way in WAYS[1:]),
    ),
}
