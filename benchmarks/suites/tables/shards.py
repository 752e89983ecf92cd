"""Graphs in a directory, of points that no memory has to hold."""

# ruff: noqa: RUF001 (tables are written with the signs of mathematics)

from __future__ import annotations

from ...harness.report.cells import recall_alone, seconds
from ...harness.report.table import Column, Line, Table
from .machines import H200

CLUSTERS = "tonari build_graph clusters"
TWO = {"case": "40m-two", "who": f"{CLUSTERS} on 2 GPUs"}

TABLES: dict[str, Table] = {
    "shards": Table(
        where={"suite": "shards", **H200},
        head="k = 10, *clusters*, synthesized SIFT",
        columns=(
            Column("build_graph", seconds(bold=True)),
            Column("recall", recall_alone()),
        ),
        lines=(
            Line("one H200: 100,000,000 × 96, made by blocks, recall=0.95", {"case": "100m", "who": CLUSTERS}),
            Line("one H200: 40,000,000 × 96 from a file, recall=0.95", {"case": "40m-two", "who": CLUSTERS}),
            Line("the same on two H200s", TWO),
        ),
    ),
}
