"""The table that README.md and the start page of the documentation show."""

# ruff: noqa: RUF001 (tables are written with the signs of mathematics)

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...harness.peers.cuda import CERTEX
from ...harness.report.cells import Kind, against, asking, joined, recall_alone, seconds, text
from ...harness.report.table import Column, Line, Table
from .machines import EPYC_ZEN4, H100, H200

TONARI, OTHERS = "tonari", "other libraries"


def _timed(library: str, who: str) -> Kind:
    """Show a peer's name, its seconds, and in brackets the ratio of its seconds to tonari's."""
    return joined(text(library), against(who=who), by=" ")


def _line(label: str, ours: Mapping[str, Any], beside: str, *others: Kind) -> Line:
    """Return a line of the table: tonari's seconds in the newest run with the peer `beside`, then the peers' cells."""
    return Line(label, ours, {TONARI: seconds({"who": beside}, bold=True), OTHERS: joined(*others, by=", ")})


def _wrong(library: str, who: str) -> Kind:
    """Show a peer's name, its seconds with the ratio to tonari's, and its recall in the newest run."""
    return joined(_timed(library, who), asking(recall_alone(".3f"), who=who), by=" and recall ")


CUDA: dict[str, Any] = {"suite": "exact_cuda", "who": "tonari", **H100}
CPU: dict[str, Any] = {"suite": "exact_cpu", "who": "tonari", **EPYC_ZEN4}

TABLES: dict[str, Table] = {
    "overview": Table(
        columns=(Column(TONARI, text("")), Column(OTHERS, text(""))),
        lines=(
            _line(
                "graph of 300,000 × 768, like text embeddings; H200",
                {**CUDA, **H200, "case": "graph-n300000"},
                "flash float32",
                _timed("flashlib (TF32)", "flash float32"),
                _timed("torch (float32)", "torch float32"),
            ),
            _line(
                "graph of 50,000 × 960, image features; 2 Zen 4 cores",
                {**CPU, "case": "graph-gist-960"},
                "faiss",
                _timed("FAISS", "faiss"),
            ),
            _line(
                "10,000 queries, 1,000,000 × 128, offset 1,000; H100",
                {**CUDA, "case": "hard-offset-1e3"},
                "cuvs",
                _wrong("flashlib", "flash float32"),
                _wrong("cuVS", "cuvs"),
            ),
            _line(
                "2,048 queries, 100,000,000 × 128 bytes, prepared; H200",
                {**CUDA, **H200, "case": "codes-100m"},
                CERTEX,
                _timed("[certex](https://github.com/hpdic/libcertex) (also exact)", CERTEX),
            ),
        ),
        caption="; k = 10, Euclidean; except for the last line, float32 and with preparation of the points. In "
        "brackets: their time divided by tonari's (a range if several runs timed both). Offset: added to every "
        "number. Sampled rows of tonari's answers were compared with exact brute force: all equal.",
    ),
}
