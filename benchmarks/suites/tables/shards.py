"""Tables about graphs in directories, of points that need not fit in memory."""

# ruff: noqa: RUF001 (tables are written with the signs of mathematics)

from __future__ import annotations

from ...harness.report.cells import recall_alone, seconds
from ...harness.report.table import Column, Line, Table
from .machines import H100, H200

CLUSTERS, GGM = "tonari build_graph clusters", "tonari build_graph ggm"

TABLES: dict[str, Table] = {
    "shards": Table(
        where={"suite": "shards"},
        head="k = 10, synthesized SIFT",
        columns=(
            Column("build_graph", seconds(bold=True)),
            Column("recall", recall_alone()),
        ),
        lines=(
            Line(
                "one H100: 10,000,000 × 96 from a file, recall=0.98, *clusters*",
                {"case": "10m-clusters", "who": CLUSTERS, **H100},
            ),
            Line("the same, *ggm*", {"case": "10m-ggm", "who": GGM, **H100}),
            Line(
                "one H100: 40,000,000 × 96 from a file, recall=0.95, *clusters*",
                {"case": "40m-two", "who": CLUSTERS, **H100},
            ),
            Line("the same on two H100s", {"case": "40m-two", "who": f"{CLUSTERS} on 2 GPUs", **H100}),
            Line(
                "one H200: 100,000,000 × 96, generated block by block, recall=0.95, *clusters*",
                {"case": "100m", "who": CLUSTERS, **H200},
            ),
            Line(
                "two H100s: 200,000,000 × 96, generated block by block, recall=0.95, *clusters*",
                {"case": "200m-two", "who": f"{CLUSTERS} on 2 GPUs", **H100},
            ),
        ),
    ),
}
