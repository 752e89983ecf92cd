"""Tables about the k-d tree: searches, builds, streams, and the figures of gieseke2014."""

# ruff: noqa: RUF001 (tables are written with the signs of mathematics)

from __future__ import annotations

from ...harness.report.cells import (
    against,
    cells_beyond,
    digits,
    number,
    per_second,
    seconds,
    share_within,
    times,
)
from ...harness.report.table import Column, Line, Table
from .machines import EPYC_AVX512, EPYC_ZEN4_AVX2, H100, H200, XEON

SEARCH = {"suite": "kdtree", "who": "tonari kdtree", "stage": "search"}
SIFT = tuple((f"sift, d = {d}", f"sift-d{d}") for d in (3, 5, 10, 15))
MAGNITUDES = ("magnitudes, d = 10", "magnitudes-d10")
EXACT = {"who": "tonari exact"}
LEAVES = number("extras.leaves", lambda found: digits(found, 2))
OF_LEAF = number("extras.leaf", "d")
PAPER = {"suite": "gieseke2014", "stage": "search"}
WALK = {"who": "tonari kdtree"}

HEIGHTS = tuple(range(6, 15))
QUERIES = (10_000, 33_333, 100_000, 1_000_000, 10_000_000)
KS = (1, 2, 4, 8, 16, 32)
POINTS = (16_384, 65_536, 262_144, 1_000_000)

AUTO_MACHINES = (
    Line("one H200", H200),
    Line("two cores, AVX-512 and AMX", XEON),
    Line("two cores, AVX2", EPYC_ZEN4_AVX2),
)

TABLES: dict[str, Table] = {
    "kdtree-epyc": Table(
        where={**SEARCH, **EPYC_AVX512},
        head="data",
        columns=(
            Column("tonari", seconds(bold=True)),
            Column("pykdtree", against(who="pykdtree")),
            Column("cKDTree", against(who="ckdtree")),
            Column("leaves visited", LEAVES),
            Column("points of a leaf", OF_LEAF),
            Column("brute force (tonari)", against(**EXACT), sparse=True),
        ),
        lines=tuple(Line(label, {"case": case}) for label, case in (*SIFT, MAGNITUDES)),
    ),
    "kdtree-h100": Table(
        where={**SEARCH, **H100},
        head="data",
        columns=(
            Column("tonari", seconds(bold=True)),
            Column("queries/s", per_second()),
            Column("leaves visited", LEAVES),
            Column("brute force (tonari)", against(**EXACT)),
        ),
        lines=tuple(
            Line(label, {"case": case})
            for label, case in (
                *SIFT[1:],
                ("sift, d = 27", "sift-d27"),
                MAGNITUDES,
                ("pixels, d = 5", "pixels-d5"),
                ("uniform, d = 3", "uniform-d3"),
            )
        ),
    ),
    "kdtree-builds": Table(
        where={"suite": "kdtree", "case": "build-d10", "stage": "build", "who": "tonari kdtree"},
        columns=(
            Column("tonari", seconds(bold=True)),
            Column("pykdtree", against(who="pykdtree"), sparse=True),
            Column("cKDTree", against(who="ckdtree"), sparse=True),
        ),
        lines=(Line("two cores", EPYC_AVX512), Line("one H100", H100)),
    ),
    "kdtree-graph": Table(
        where={"suite": "kdtree", "case": "graph-d3", "who": "tonari kdtree", **H100},
        columns=(
            Column("from raw points, with the build", seconds(bold=True), {"stage": "with build"}),
            Column("the search alone", seconds(), {"stage": "search"}),
            Column("`auto`", against(who="tonari auto"), {"stage": "with build"}),
            Column("brute force (tonari)", against(**EXACT), {"stage": "with build"}),
        ),
        lines=(Line("1,000,000 × 3, uniform, k = 32"),),
    ),
    "kdtree-streams": Table(
        where={"suite": "kdtree", "stage": "stream", "who": "tonari kdtree", **H100},
        columns=(Column("seconds", seconds(bold=True)), Column("queries/s", per_second())),
        lines=(
            Line("chunks generated on the card", {"case": "stream", "note": "chunks made o*"}),
            Line("chunks in host memory, results in host memory", {"case": "stream", "note": "chunks in hos*"}),
            Line("from file to file", {"case": "stream-file"}),
        ),
    ),
    "gieseke2014-fig2": Table(
        where={**PAPER, **WALK, "case": "fig2-d10"},
        head="height",
        columns=tuple(Column(str(height), seconds(), {"extras.height": height}) for height in HEIGHTS),
        lines=(
            Line("one H100, 10,000,000 queries", H100),
            Line("two cores, 100,000 queries", EPYC_AVX512),
        ),
    ),
    "gieseke2014-fig3a": Table(
        where={**PAPER, **WALK, "case": "fig3a-d10"},
        head="queries",
        columns=tuple(Column(f"{m:,}", seconds(), {"m": m}, sparse=True) for m in QUERIES),
        lines=tuple(
            line
            for where, machine in (("one H100", H100), ("two cores", EPYC_AVX512))
            for line in (
                Line(f"{where}, sorted", {**machine, "extras.sort": True}),
                Line(f"{where}, in given order", {**machine, "extras.sort": False}),
                Line(
                    "given order over sorted",
                    {**machine, "extras.sort": True},
                    {f"{m:,}": times(**{"extras.sort": False}) for m in QUERIES},
                ),
            )
        ),
    ),
    "gieseke2014-fig5": Table(
        where={**PAPER, "case": "fig5-d10"},
        head="k",
        columns=tuple(Column(str(k), seconds(), {"k": k}, sparse=True) for k in (*KS, 64)),
        lines=(
            Line("one H100, 10,000,000 queries: tree", {**H100, "who": "tonari kdtree"}),
            Line("brute force", {**H100, "who": "tonari exact"}),
            Line("two cores, 100,000 queries: tree", {**EPYC_AVX512, "who": "tonari kdtree"}),
            Line("pykdtree", {**EPYC_AVX512, "who": "pykdtree"}),
        ),
    ),
    "gieseke2014-fig6": Table(
        where={**PAPER, "case": "fig6-d10", **EPYC_AVX512},
        head="n",
        columns=tuple(Column(f"{n:,}", seconds(), {"n": n}) for n in POINTS),
        lines=tuple(
            Line(label, {"who": who})
            for label, who in (("tree", "tonari kdtree"), ("pykdtree", "pykdtree"), ("brute force", "tonari exact"))
        ),
    ),
    "kdtree-auto": Table(
        where={"suite": "kdtree", "who": "tonari auto", "case": "auto-*", "bar_on": "over the better one"},
        columns=(
            Column("at most 1.15 times the faster method", share_within(1.15)),
            Column("at most 1.2 times", share_within(1.2)),
        ),
        lines=AUTO_MACHINES,
    ),
    "kdtree-auto-beyond": Table(
        where={"suite": "kdtree", "who": "tonari auto", "case": "auto-*", "bar_on": "over the better one"},
        columns=(Column("cells above 1.15 times: data, points × queries: ratio", cells_beyond(1.15)),),
        lines=AUTO_MACHINES,
    ),
}
