"""Tables about exact search, on CPUs and on GPUs."""

# ruff: noqa: RUF001 (tables are written with the signs of mathematics)

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...harness.peers.cuda import CERTEX, CERTEX_INT8
from ...harness.report.cells import (
    against,
    against_newest,
    against_of_runs,
    asking,
    number,
    number_of_runs,
    percent,
    recall,
    seconds,
    seconds_of_runs,
    text,
    times,
)
from ...harness.report.table import Column, Line, Table
from .. import growth
from ..exact_cuda import codes
from .machines import EPYC, EPYC_ZEN4, H100, H200, XEON

PROCESSORS = {
    "xeon-amx": (XEON, "amx"),
    "xeon-avx512": (XEON, "avx512"),
    "epyc-avx512": (EPYC, "avx512"),
    "epyc-avx2": (EPYC, "avx2"),
}
CPU_CASES = {
    "graph, SIFT × 128, float32": "graph-sift-f32",
    "the same, uint8": "graph-sift-u8",
    "search, Gaussian × 128, k = 10": "search-gauss-k10",
    "k = 100": "search-gauss-k100",
    "k = 1000": "search-gauss-k1000",
    "clustered × 784": "search-clustered-784",
    "Gaussian × 16": "search-16d",
    "cosine, × 128": "metric-cosine",
    "one query, 1,000,000 × 128, prepared": "one-query-1m",
}
SKLEARN = {
    "tonari": seconds_of_runs(bold=True),
    "peer": against_of_runs(who="sklearn"),
    "speed-up": times(who="sklearn"),
}


def _cpu(machine: Mapping[str, Any], isa: str) -> Table:
    """Return the table of one machine and instruction set, with tonari's and faiss's seconds over all runs."""
    lines = [Line(label, {"case": case}) for label, case in CPU_CASES.items()]
    if (machine, isa) == (XEON, "avx512"):  # cosine and l1 were not measured on this machine
        lines = [line for line in lines if line.where["case"] != "metric-cosine"]
    else:
        lines.append(Line("l1, Gaussian × 128, compared with scikit-learn", {"case": "l1"}, SKLEARN))
    return Table(
        where={"suite": "exact_cpu", "who": "tonari", **machine, "isa": isa},
        columns=(
            Column("tonari", seconds_of_runs(bold=True)),
            Column("peer", against_of_runs(who="faiss")),
            Column("speed-up", times(who="faiss")),
        ),
        lines=lines,
    )


CUVS, FLASH32, FLASH16, TORCH32 = ({"who": who} for who in ("cuvs", "flash float32", "flash float16", "torch float32"))
CUDA_COLUMNS = (
    Column("tonari", seconds(bold=True)),
    Column("cuVS brute force", against(**CUVS), sparse=True),
    Column("flash_knn, float32", against(**FLASH32), sparse=True),
    Column("its recall", asking(recall(), **FLASH32), sparse=True),
    Column("flash_knn, float16", against(**FLASH16), sparse=True),
    Column("its recall", asking(recall(), **FLASH16), sparse=True),
)
WIDTHS = (16, 32, 64, 96, 128, 256, 512, 768, 1024)


CEILING, SHARE = "extras.ceiling_gflops", "extras.fraction"
BYTES, ONE = {"case": "graph-sift-u8"}, {"case": "one-query-1m"}


def trillions(gflops: float) -> str:
    """Return a number of 10⁹ operations/s as text, in 10¹² operations/s."""
    return f"{gflops / 1e3:.2f}"


CHOSEN = {"who": "tonari, chosen"}

TABLES: dict[str, Table] = {
    **{f"exact-{name}": _cpu(machine, isa) for name, (machine, isa) in PROCESSORS.items()},
    "exact-contracted": Table(
        where={"suite": "exact_cpu", "who": "tonari", **EPYC_ZEN4},
        columns=(
            Column("tonari", seconds(bold=True)),
            Column("faiss, flat", against(who="faiss")),
            Column("faiss, Panorama", against(who="panorama"), sparse=True),
        ),
        lines=(
            Line("graph, filter responses, 50,000 × 960", {"case": "graph-gist-960"}),
            Line("search, 10,000 × 50,000 × 960", {"case": "search-gist-960"}),
            Line("search, clustered, 10,000 × 100,000 × 784", {"case": "search-clustered-784"}),
            Line("one query, filter responses, 50,000 × 960, prepared", {"case": "one-query-gist-960"}),
            Line("one query, clustered, 60,000 × 784, prepared", {"case": "one-query-clustered-784"}),
            Line("one query, SIFT, 99,000 × 128, prepared (not contracted)", {"case": "one-query-sift"}),
        ),
    ),
    "exact-contracted-cuda": Table(
        where={"suite": "exact_cuda"},
        columns=(
            Column("tonari", seconds(bold=True)),
            Column("all columns", against(who="tonari, form_dim full")),
        ),
        lines=(
            Line("graph, filter responses, 1,000,000 × 960", {"case": "contracted-graph-gist", **CHOSEN, **H200}),
            Line("the same, topics, 1,000,000 × 768", {"case": "contracted-graph-topics", **CHOSEN, **H200}),
            Line("the same, slow topics", {"case": "contracted-graph-slow-topics", **CHOSEN, **H200}),
            Line(
                "10,000 × 1,000,000 × 768, topics, cosine, an `Index` that has been searched 84 times",
                {"case": "contracted-topics", "who": "tonari Index", **H200},
            ),
        ),
    ),
    "exact-bytes-cuda": Table(
        where={"suite": "exact_cuda"},
        columns=(
            Column("tonari", seconds(bold=True)),
            Column("beginning with float16", against(who="tonari, float16")),
        ),
        lines=(
            Line("graph, 1,000,000 × 768", {"case": "contracted-graph-patches", **CHOSEN, **H200}),
            Line("search, 10,000 × 1,000,000 × 768", {"case": "contracted-patches", **CHOSEN, **H200}),
        ),
    ),
    "exact-growth-h200": Table(
        where={"suite": "exact_cuda", "who": "tonari", **H200},
        columns=(
            Column("tonari", seconds(bold=True)),
            Column("torch.mm + topk, float32", against(**TORCH32), sparse=True),
            Column("flash_knn, float32", against(**FLASH32), sparse=True),
            Column("its recall", asking(recall(), **FLASH32), sparse=True),
        ),
        lines=[Line(f"{n:,} × 768", {"case": f"{growth.CASE}{n}"}) for n in growth.ON_CUDA],
    ),
    "exact-h100": Table(
        where={"suite": "exact_cuda", "who": "tonari", **H100},
        columns=CUDA_COLUMNS,
        lines=(
            Line("graph, SIFT, 1,000,000 × 128", {"case": "graph-sift"}),
            Line("graph, Gaussian, 1,000,000 × 128", {"case": "graph-gauss"}),
            Line("10,000 queries × 1,000,000 × 128", {"case": "search-k10"}),
            Line("k = 64", {"case": "search-k64"}),
            Line("k = 256", {"case": "search-k256"}),
            Line("k = 1024", {"case": "search-k1024"}),
            Line("10,000 × 1,000,000 × 16", {"case": "search-d16"}),
            Line("10,000 × 1,000,000 × 32", {"case": "search-d32"}),
            Line("10,000 × 1,000,000 × 128, data at an offset of 1000", {"case": "hard-offset-1e3"}),
            Line("16 copies of every point", {"case": "hard-copies-16"}),
        ),
    ),
    "exact-h100-torch": Table(
        where={"suite": "exact_cuda", "who": "tonari", **H100},
        columns=(
            Column("tonari", seconds(bold=True)),
            Column("torch.mm + topk, float32", against(who="torch float32")),
            Column("float16", against(who="torch float16")),
            Column("its recall", asking(recall(), who="torch float16")),
        ),
        lines=(
            Line("1,000 queries × 10,000 × 64, points not prepared", {"case": "small"}),
            Line("1 query × 10,000,000 × 128, prepared", {"case": "one-query"}),
            Line("graph, mixture, 1,000,000 × 960", {"case": "graph-960"}),
            Line("graph, mixture, 10,000,000 × 96, k = 32", {"case": "graph-10m"}),
        ),
    ),
    "exact-h100-hard": Table(
        where={"suite": "exact_cuda", **H100},
        columns=(
            Column("tonari", seconds(bold=True), {"who": "tonari"}),
            Column("torch, float32", against_newest(**TORCH32), {"who": "tonari"}),
            Column("its recall", asking(recall(), **TORCH32)),
            Column("flash_knn, float32", against_newest(**FLASH32), {"who": "tonari"}),
            Column("its recall", asking(recall(), **FLASH32)),
        ),
        lines=(
            Line("data at an offset of 10³", {"case": "hard-offset-1e3"}),
            Line("data at an offset of 10⁶", {"case": "hard-offset-1e6"}),
            Line("tight clusters that are far apart", {"case": "hard-tight"}),
            Line("16 copies of every point", {"case": "hard-copies-16"}),
            Line("duplicates only", {"case": "hard-copies"}),
        ),
    ),
    "exact-screen": Table(
        where={"suite": "exact_cuda", "case": "screen", "m": 8192, **H100},
        head="d",
        columns=tuple(Column(str(d), number("extras.tflops", ".0f"), {"d": d}) for d in WIDTHS),
        lines=(
            Line("all minima, TFLOP/s", {"who": "tonari screen, minima of*"}),
            Line("below a threshold, TFLOP/s", {"who": "tonari screen, below a threshold"}),
            Line(
                "all minima, share of the ceiling",
                {"who": "tonari screen, minima of*"},
                {str(d): number("extras.fraction_gemm", percent) for d in WIDTHS},
            ),
            Line(
                "below a threshold, share of the ceiling",
                {"who": "tonari screen, below a threshold"},
                {str(d): number("extras.fraction_gemm", percent) for d in WIDTHS},
            ),
            Line(
                "below a threshold, 10¹² pairs/s",
                {"who": "tonari screen, below a threshold"},
                {str(d): number("extras.pairs_per_s", lambda found: f"{found / 1e12:.1f}") for d in WIDTHS},
            ),
            Line(
                "a float16 product with its output, TFLOP/s",
                {"who": "tonari screen, below a threshold"},
                {str(d): number("extras.gemm_d_tflops", ".0f") for d in WIDTHS},
            ),
            Line(
                "the ceiling: a float16 product of 8192 × 8192 matrices, TFLOP/s",
                {"who": "tonari screen, below a threshold"},
                {str(d): number("extras.gemm_tflops", ".0f") for d in WIDTHS},
            ),
        ),
    ),
    "exact-matsumoto2015": Table(
        where={"suite": "matsumoto2015", "case": "search", "who": "tonari", **H100},
        columns=(
            Column("tonari", seconds(bold=True)),
            Column("TH-heap, 2048 samples", against(who="TH-heap, n_S = 2048")),
            Column("TH-heap, 512 samples", against(who="TH-heap, n_S = 512")),
        ),
        lines=(Line("8192 × 1,000,000 × 128, k = 64"),),
    ),
    "exact-routes": Table(
        where={"suite": "exact_cuda"},
        columns=(Column("seconds", seconds(bold=True)), Column("compared with", text(""))),
        lines=(
            Line(
                '20,000,000 × 128 in host memory, 100,000 queries, `memory="6GB"`, compared with points on the device',
                {"case": "streamed", "who": "tonari, 6GB of the device", **H100},
                {"compared with": against(who="tonari")},
            ),
            Line(
                "graph, 4,000,000 × 128, on two H200s, compared with one",
                {"case": "two-gpus", "who": "tonari, 2 GPUs", **H200},
                {"compared with": against(who="tonari, 1 GPU")},
            ),
            Line(
                "60,000,000 × 768 float16 in host memory, 1,000 queries, `form_dim=64`; compared with these 64 columns",
                {"case": "contracted-host", "who": "tonari", **H200},
                {"compared with": against(who="tonari, resident search of f")},
            ),
        ),
    ),
    "exact-codes": Table(
        where={"suite": "exact_cuda", "case": "codes-*", **H200},
        head="points × 128",
        columns=(
            Column("preparation", asking(seconds(), who="tonari, prepare")),
            Column(
                "queries per second, batches of 2,048",
                number("value", ",.0f"),
                {"who": "tonari", "bar_on": codes.RATE},
            ),
            Column("certex", number(f"extras.{codes.RATE}", ",.0f"), {"who": CERTEX}, sparse=True),
            Column(
                "in one call of 8,192",
                number(f"extras.{codes.RATE_AT_ONCE}", ",.0f"),
                {"who": "tonari, one call"},
            ),
            Column(
                "certex",
                number(f"extras.{codes.RATE_AT_ONCE}", ",.0f"),
                {"who": f"{CERTEX}, one call"},
                sparse=True,
            ),
        ),
        lines=tuple(Line(f"{millions} million", {"case": f"codes-{millions}m"}) for millions in (10, 100, 500)),
    ),
    "exact-certex": Table(
        where={"suite": "exact_cuda", "who": "tonari", **H200},
        columns=(
            Column("tonari", seconds({"who": CERTEX}, bold=True)),
            Column(CERTEX, against(who=CERTEX)),
            Column("its int8 rows", against(who=CERTEX_INT8)),
        ),
        lines=(
            Line("10,000 queries × 1,000,000 × 128, float32 on the device", {"case": "search-k10"}),
            Line("2,048 × 10,000,000 × 128, uint8 in host memory, codes", {"case": "codes-10m"}),
            Line("2,048 × 100,000,000 × 128, the same", {"case": "codes-100m"}),
        ),
    ),
    "exact-cold": Table(
        where={"suite": "exact_cuda", "who": "tonari, first call", **H200},
        columns=(
            Column("first call", seconds(bold=True)),
            Column("kernels compiled one by one", against(who="tonari, kernels one by one")),
        ),
        lines=(
            Line("10,000 × 1,000,000 × 128, k = 10", {"case": "cold-k10"}),
            Line("k = 256", {"case": "cold-k256"}),
            Line("k = 10, tight clusters", {"case": "cold-tight"}),
        ),
    ),
    "exact-ceilings": Table(
        where={"suite": "exact_cpu", "who": "tonari"},
        columns=(
            Column("ceiling of the screen's products, 10¹² operations/s", number_of_runs(CEILING, trillions), BYTES),
            Column("share of it that a graph of bytes reaches", number_of_runs(SHARE, percent), BYTES),
            Column("memory read, GB/s", number_of_runs(CEILING, lambda found: f"{found:.1f}"), ONE),
        ),
        lines=(
            Line("Xeon, AMX int8", {**XEON, "isa": "amx"}),
            Line("Xeon, AVX-512 int8", {**XEON, "isa": "avx512"}),
            Line("EPYC, AVX-512 int8", {**EPYC, "isa": "avx512"}),
            Line("EPYC, AVX2 int8", {**EPYC, "isa": "avx2"}),
        ),
    ),
}
