"""The table of README.md."""

# ruff: noqa: RUF001 (tables are written with the signs of mathematics)

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...harness.report.cells import (
    Kind,
    against_of_runs,
    asking,
    joined,
    recall_alone,
    seconds,
    seconds_of_runs,
    text,
    times,
    version,
)
from ...harness.report.table import Column, Line, Table
from .machines import EPYC_AVX512, H100, XEON

TONARI, PEER, ITS_SECONDS, TIMES = "tonari", "peer", "peer's time", "speed-up"


def _line(
    label: str, ours: Mapping[str, Any], ours_kind: Kind, theirs: Mapping[str, Any], name: str, library: str
) -> Line:
    """One line: our seconds, the peer with its version and recall, its seconds in the same runs."""
    peer = joined(text(name), version(library), joined(text("recall"), recall_alone(), by=" "), by=", ")
    return Line(
        label,
        ours,
        {
            TONARI: ours_kind,
            PEER: asking(peer, **theirs),
            ITS_SECONDS: against_of_runs(**theirs),
            TIMES: times(**theirs),
        },
    )


FAISS = {"who": "faiss"}
APPROXIMATE = {"suite": "nn_descent", "who": "tonari nn_descent", "case": "curve-sift", "parameters.recall": 0.99}
AT = joined(seconds(bold=True), recall_alone(), by=" at recall ")

TABLES: dict[str, Table] = {
    "overview": Table(
        where={},
        columns=(
            Column(TONARI, seconds()),
            Column(PEER, text("")),
            Column(ITS_SECONDS, text("")),
            Column(TIMES, text("")),
        ),
        lines=(
            _line(
                "Graph of 100,000 × 128, Xeon with AMX, 2 threads",
                {"suite": "exact_cpu", "case": "graph-sift-f32", "who": "tonari", **XEON, "isa": "amx"},
                seconds_of_runs(bold=True),
                FAISS,
                "`IndexFlatL2`",
                "faiss-cpu",
            ),
            _line(
                "The same, EPYC with AVX-512, 2 threads",
                {"suite": "exact_cpu", "case": "graph-sift-f32", "who": "tonari", **EPYC_AVX512},
                seconds_of_runs(bold=True),
                FAISS,
                "`IndexFlatL2`",
                "faiss-cpu",
            ),
            _line(
                "200,000 queries × 1,000,000 × 10, k-d tree, the same EPYC",
                {"suite": "kdtree", "case": "sift-d10", "who": "tonari kdtree", "stage": "search", **EPYC_AVX512},
                seconds(bold=True),
                {"who": "pykdtree"},
                "k-d tree",
                "pykdtree",
            ),
            _line(
                "Graph of 1,000,000 × 128, H100",
                {"suite": "exact_cuda", "case": "graph-sift", "who": "tonari", **H100},
                seconds(bold=True),
                {"who": "cuvs"},
                "brute force",
                "cuvs-cu13",
            ),
            _line(
                "10,000 queries × 1,000,000 × 128, H100",
                {"suite": "exact_cuda", "case": "search-k10", "who": "tonari", **H100},
                seconds(bold=True),
                {"who": "flash float32"},
                "flash_knn",
                "flashlib",
            ),
            _line(
                "Approximate graph of 1,000,000 × 128, H100",
                {**APPROXIMATE, **H100},
                AT,
                {"who": "cuvs nn_descent", "parameters.recall": None, "parameters": {"max_iterations": 10}},
                "nn_descent",
                "cuvs-cu13",
            ),
        ),
    ),
}
