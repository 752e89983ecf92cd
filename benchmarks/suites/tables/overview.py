"""The table of README.md and of the start page."""

# ruff: noqa: RUF001 (tables are written with the signs of mathematics)

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...harness.report.cells import Kind, asking, joined, recall_alone, seconds, text, times_newest, version
from ...harness.report.table import Column, Line, Table
from .machines import EPYC_AVX512, H100, H200

TONARI, PEER, ITS_SECONDS, TIMES = "tonari", "peer", "its time", "speed-up"
EXACT = joined(text("recall"), recall_alone(".3f"), by=" ")


def _line(
    label: str, ours: Mapping[str, Any], theirs: Mapping[str, Any], name: str, library: str, *, recall: bool = False
) -> Line:
    """One line: our seconds (with our recall if asked for), the peer with its version and recall, and its seconds."""
    release = joined(version(library), text(name), by=" ") if name else version(library)
    peer: Kind = joined(release, EXACT, by=", ")
    own: Kind = seconds(theirs, bold=True)
    return Line(
        label,
        ours,
        {
            TONARI: joined(own, EXACT, by=", ") if recall else own,
            PEER: asking(peer, **theirs),
            ITS_SECONDS: asking(seconds(ours), **theirs),
            TIMES: times_newest(**theirs),
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
                "10,000 queries in 1,000,000 × 128 Gaussian, H100",
                {"suite": "exact_cuda", "case": "search-k10", "who": "tonari", **H100},
                {"who": "cuvs"},
                "brute force",
                "cuvs-cu13",
            ),
            _line(
                "the same",
                {"suite": "exact_cuda", "case": "search-k10", "who": "tonari", **H100},
                {"who": "flash float32"},
                "`flash_knn`",
                "flashlib",
            ),
            _line(
                "the same, with 1,000 added to every number, so that float32 formulas fail, H100",
                {"suite": "exact_cuda", "case": "hard-offset-1e3", "who": "tonari", **H100},
                {"who": "flash float32"},
                "`flash_knn`",
                "flashlib",
            ),
            Line(
                "graph of 1,000,000 × 768, similar to embeddings, H200",
                {"suite": "exact_cuda", "case": "contracted-graph-topics", "who": "tonari, chosen", **H200},
            ),
            _line(
                "graph of 100,000 × 128 SIFT, two cores",
                {"suite": "exact_cpu", "case": "graph-sift-f32", "who": "tonari", **EPYC_AVX512},
                {"who": "faiss"},
                "`IndexFlatL2`",
                "faiss-cpu",
            ),
            _line(
                "10,000 queries in 100,000 × 784 clustered, two cores",
                {"suite": "exact_cpu", "case": "search-clustered-784", "who": "tonari", **EPYC_AVX512},
                {"who": "faiss"},
                "`IndexFlatL2`",
                "faiss-cpu",
            ),
            _line(
                "200,000 queries in 1,000,000 × 3 (components of SIFT), two cores",
                {"suite": "kdtree", "case": "sift-d3", "who": "tonari kdtree", "stage": "search", **EPYC_AVX512},
                {"who": "ckdtree"},
                "`cKDTree`",
                "scipy",
            ),
            _line(
                "graph of 100,000 × 128 SIFT, k = 15, approximate, two cores",
                {"suite": "nn_descent", "case": "sift-100k", "who": "tonari nn_descent", **EPYC_AVX512},
                {"who": "pynndescent"},
                "",
                "pynndescent",
                recall=True,
            ),
            Line(
                "graph of 200,000,000 × 96, approximate, two H100s",
                {"suite": "shards", "case": "200m-two", "who": "tonari build_graph clusters on 2 GPUs", **H100},
            ),
        ),
        caption="; k = 10 unless stated, Euclidean, float32. A speed-up is the ratio of the medians of two libraries "
        "that were timed alternately, with the same number of threads. All figures of a line are from its newest run. "
        '"Two cores" are two virtual processors, and all libraries use both. The clock starts with arrays in the '
        "memory of the device that searches, and stops when the results are complete. It includes the preparation of "
        "the points, such as building a tree. In the first two lines and in the line with three dimensions, it does "
        "not: there, both libraries prepare the points before the clock starts. In the last line, the rows are "
        "generated during the run. The compilation of pynndescent is not included. cuVS, flashlib and faiss compute "
        "distances in float32, `cKDTree` in float64; tonari's distances are float64 values, rounded once. Recall "
        "0.000 is due to the data, which are made so that float32 formulas fail. SIFT rows are descriptors of "
        "photographs; all other data are random numbers.",
    ),
}
