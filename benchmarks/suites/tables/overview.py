"""The table of README.md and of the start page."""

# ruff: noqa: RUF001 (tables are written with the signs of mathematics)

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...harness.report.cells import Kind, asking, joined, recall_alone, seconds, text, times, version
from ...harness.report.table import Column, Line, Table
from .machines import EPYC_AVX512, EPYC_ZEN4, H100

TONARI, PEER, ITS_SECONDS, TIMES = "tonari", "peer", "its time", "speed-up"
FLASH = {"who": "flash float32"}
EXACT = joined(text("recall"), recall_alone(".3f"), by=" ")


def _line(
    label: str, ours: Mapping[str, Any], theirs: Mapping[str, Any], name: str, library: str, *, recall: bool = False
) -> Line:
    """One line: our seconds, the peer's version (and recall), its seconds, and the speed-ups of all runs."""
    release = joined(version(library), text(name), by=" ") if name else version(library)
    peer: Kind = joined(release, EXACT, by=", ") if recall else release
    return Line(
        label,
        ours,
        {
            TONARI: seconds(theirs, bold=True),
            PEER: asking(peer, **theirs),
            ITS_SECONDS: asking(seconds(ours), **theirs),
            TIMES: times(**theirs),
        },
    )


TABLES: dict[str, Table] = {
    "overview": Table(
        columns=(
            Column(TONARI, joined(seconds(bold=True), EXACT, by=", ")),
            Column(PEER, text("")),
            Column(ITS_SECONDS, text("")),
            Column(TIMES, text("")),
        ),
        lines=(
            _line(
                "10,000 queries in 1,000,000 × 128 random points, H100",
                {"suite": "exact_cuda", "case": "search-k10", "who": "tonari", **H100},
                FLASH,
                "`flash_knn`",
                "flashlib",
                recall=True,
            ),
            Line(
                "the same with 1,000 added to every number",
                {"suite": "exact_cuda", "case": "hard-offset-1e3", "who": "tonari", **H100},
                {
                    TONARI: seconds(FLASH, bold=True),
                    PEER: asking(joined(text("`flash_knn`, wrong: recall"), recall_alone(".3f"), by=" "), **FLASH),
                },
            ),
            _line(
                "graph of 100,000 × 128 SIFT descriptors, two cores",
                {"suite": "exact_cpu", "case": "graph-sift-f32", "who": "tonari", **EPYC_AVX512},
                {"who": "faiss"},
                "`IndexFlatL2`",
                "faiss-cpu",
            ),
            _line(
                "graph of 50,000 × 960 descriptors of photographs, two cores",
                {"suite": "exact_cpu", "case": "graph-gist-960", "who": "tonari", **EPYC_ZEN4},
                {"who": "faiss"},
                "`IndexFlatL2`",
                "faiss-cpu",
            ),
            _line(
                "200,000 queries in 1,000,000 × 3 (components of SIFT), two cores",
                {"suite": "kdtree", "case": "sift-d3", "who": "tonari kdtree", "stage": "search", **EPYC_AVX512},
                {"who": "pykdtree"},
                "",
                "pykdtree",
            ),
            _line(
                "nearest of 100,000 stars to 100,000 positions in degrees, two cores",
                {"suite": "consumers", "case": "sky-match", "who": "tonari", **EPYC_ZEN4},
                {"who": "astropy"},
                "",
                "astropy",
            ),
            Line(
                "approximate graph of 200,000,000 × 96 random points, two H100s",
                {"suite": "shards", "case": "200m-two", "who": "tonari build_graph clusters on 2 GPUs", **H100},
            ),
        ),
        caption="; k = 10 (for stars 1), Euclidean, float32 (for stars float64). The libraries of a line are timed "
        "alternately on the same processors, with their data in the memory of the device. A range of speed-ups is from "
        "several runs. Times include the preparation of the points, such as building a tree, except in the first and "
        "the fifth line, where both libraries prepare the points before the clock starts. A recall is shown if "
        "neighbours are missing. SIFT and the 960-column descriptors are from photographs; all other data are random.",
    ),
}
