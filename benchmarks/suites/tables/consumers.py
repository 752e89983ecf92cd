"""Tables about calls by users of scikit-learn and UMAP, compared with the same calls of these libraries."""

# ruff: noqa: RUF001 (tables are written with the signs of mathematics)

from __future__ import annotations

from ...harness.report.cells import against, joined, recall_alone, seconds, seconds_of_runs
from ...harness.report.table import Column, Line, Table
from .machines import EPYC_ZEN4

AT_RECALL = joined(seconds_of_runs(), recall_alone(), by=" at ")

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
            Line("`NearestNeighbors.radius_neighbors`, 20,000 × 3, radius 0.2", {"case": "radius"}),
            Line("`LocalOutlierFactor`, 20,000 × 32, 20 neighbours", {"case": "outliers"}),
            Line("`DBSCAN`, 50,000 × 3, eps 0.15", {"case": "dbscan"}),
            Line("the same, 20,000 × 32, eps 2", {"case": "dbscan-32d"}),
        ),
    ),
    "consumers-umap": Table(
        where={"suite": "consumers", **EPYC_ZEN4},
        head="60,000 × 50, `n_neighbors=15`",
        columns=(
            Column("exact", seconds_of_runs(bold=True), {"who": "tonari exact"}),
            Column("NN-Descent", AT_RECALL, {"who": "tonari nn_descent"}, sparse=True),
            Column("pynndescent", AT_RECALL, {"who": "pynndescent"}),
        ),
        lines=(
            Line("overlapping clusters", {"case": "umap"}),
            Line("the same, first call in a process", {"case": "umap-first"}, {"pynndescent": seconds()}),
            Line("components of SIFT descriptors", {"case": "umap-sift"}),
            Line("the same, pynndescent with its own defaults", {"case": "umap-sift-defaults"}),
        ),
    ),
}
