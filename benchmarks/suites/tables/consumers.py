"""What users of scikit-learn and UMAP call, beside what they call today."""

# ruff: noqa: RUF001 (tables are written with the signs of mathematics)

from __future__ import annotations

from ...harness.report.cells import against, recall_alone, seconds, text
from ...harness.report.table import Column, Line, Table
from .machines import EPYC_ZEN4

UNMEASURED = {"recall": text("")}

TABLES: dict[str, Table] = {
    "consumers-estimators": Table(
        where={"suite": "consumers", "who": "tonari", **EPYC_ZEN4},
        columns=(
            Column("tonari", seconds(bold=True)),
            Column("scikit-learn", against(who="sklearn")),
        ),
        lines=(
            Line("`KNeighborsTransformer`, 70,000 × 50, 15 neighbours", {"case": "transformer"}),
            Line("`GridSearchCV` of `KNeighborsClassifier`, 100 × 50", {"case": "grid-100"}),
            Line("the same, 1,000 × 50", {"case": "grid-1000"}),
            Line("the same, 10,000 × 50", {"case": "grid-10000"}),
        ),
    ),
    "consumers-umap": Table(
        where={"suite": "consumers", **EPYC_ZEN4},
        head="60,000 × 50, `n_neighbors=15`",
        columns=(
            Column("seconds", seconds(bold=True)),
            Column("recall", recall_alone()),
        ),
        lines=(
            Line("`tonari.knn_graph(points, 14)`, exact", {"case": "umap", "who": "tonari exact"}),
            Line('`method="nn-descent"`, `recall=` that of pynndescent', {"case": "umap", "who": "tonari nn_descent"}),
            Line("pynndescent as umap-learn calls it", {"case": "umap", "who": "pynndescent"}),
            Line("first call in a process: tonari, exact", {"case": "umap-first", "who": "tonari exact"}, UNMEASURED),
            Line("first call in a process: pynndescent", {"case": "umap-first", "who": "pynndescent"}, UNMEASURED),
        ),
    ),
}
