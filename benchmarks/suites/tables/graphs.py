"""Tables about approximate graphs by NN-Descent, compared with exact graphs and peers."""

# ruff: noqa: RUF001 (tables are written with the signs of mathematics)

from __future__ import annotations

from ...harness.report.cells import against, asking, at_recall, number, over, recall, seconds, share
from ...harness.report.table import Column, Line, Table
from .machines import EPYC_AVX512, H100

OURS = {"suite": "nn_descent", "who": "tonari nn_descent"}
EXACT = against(who="tonari exact")
ROUNDS = number("extras.rounds", "d")
MEMORY = number("peak_bytes", lambda found: f"{found / 1e9:.2f} GB")
OF_TARGET = number("value", ".2f")
COMPILATION = number("extras.compile_seconds", lambda found: f"{found:.0f} s")
AT_10 = recall(at="_10")


CURVES = (
    ("SIFT, 100,000 × 128", "curve-sift"),
    ("mixture, 100,000 × 96", "curve-mixture"),
    ("filter responses, 50,000 × 960", "curve-gist"),
    ("isotropic Gaussian, 100,000 × 32", "curve-gaussian"),
)
BEST = {"suite": "nn_descent", "who": "tonari nn_descent", "parameters.recall": 0.99}
CUVS = {"who": "cuvs nn_descent"}

TABLES: dict[str, Table] = {
    "graphs-h100": Table(
        where={**OURS, **H100},
        columns=(
            Column("tonari", seconds(bold=True)),
            Column("recall at k (95 %)", recall()),
            Column("recall@10 (95 %)", AT_10),
            Column("rounds", ROUNDS),
            Column("memory", MEMORY),
            Column("memory over its target", OF_TARGET, {"bar_on": "memory"}),
            Column("exact graph", EXACT, sparse=True),
        ),
        lines=(
            Line("1,000,000 × 128 SIFT, k = 10, recall=0.99", {"case": "sift-1m"}),
            Line("the same, k = 32", {"case": "sift-1m-k32"}),
            Line("1,000,000 × 960 filter responses, k = 10, recall=0.95", {"case": "gist-1m"}),
            Line("10,000,000 × 96 mixture, k = 32, recall=0.99", {"case": "clustered-10m"}),
            Line("50,000,000 × 96 float16 mixture, k = 16, recall=0.95", {"case": "clustered-50m"}),
        ),
    ),
    "graphs-merge": Table(
        where={"suite": "nn_descent", "who": "tonari merge"},
        columns=(
            Column("tonari", seconds(bold=True)),
            Column("recall at k (95 %)", recall()),
            Column("a whole build", against(who="tonari nn_descent")),
            Column("merge over build", share(who="tonari nn_descent")),
        ),
        lines=(
            Line("one H100: two halves of 1,000,000 SIFT × 128 merged, k = 10", {**H100, "case": "merge-1m"}),
            Line("1,000 points added to 1,000,000", {**H100, "case": "merge-1k"}),
            Line("two cores: two halves of 100,000 merged, k = 15", {**EPYC_AVX512, "case": "merge-100k"}),
        ),
    ),
    "graphs-epyc": Table(
        where={**OURS, **EPYC_AVX512},
        columns=(
            Column("tonari", seconds(bold=True)),
            Column("recall@15", recall()),
            Column("pynndescent", against(who="pynndescent", parameters={})),
            Column(
                "20 neighbours", against(who="pynndescent n_neighbors=20", parameters={"n_neighbors": 20}), sparse=True
            ),
            Column(
                "24 neighbours", against(who="pynndescent n_neighbors=24", parameters={"n_neighbors": 24}), sparse=True
            ),
            Column("its compilation", asking(COMPILATION, who="pynndescent", parameters={})),
            Column("exact graph (tonari)", EXACT),
            Column("memory over its target", OF_TARGET, {"bar_on": "memory"}),
        ),
        lines=(
            Line("100,000 × 128 SIFT, k = 15, recall=0.97", {"case": "sift-100k"}),
            Line("1,000,000 × 128", {"case": "sift-1m"}),
        ),
    ),
    "graphs-epyc-recall": Table(
        where={"suite": "nn_descent", **EPYC_AVX512},
        head="recall@15 (95 %) of pynndescent",
        columns=(
            Column("its defaults", recall(), {"who": "pynndescent"}),
            Column("20 neighbours", recall(), {"who": "pynndescent n_neighbors=20"}, sparse=True),
            Column("24 neighbours", recall(), {"who": "pynndescent n_neighbors=24"}, sparse=True),
        ),
        lines=(
            Line("100,000 × 128 SIFT, k = 15", {"case": "sift-100k"}),
            Line("1,000,000 × 128", {"case": "sift-1m"}),
        ),
    ),
    "graphs-auto": Table(
        where=OURS,
        columns=(
            Column("NN-Descent", seconds()),
            Column("`auto`", against(who="tonari auto")),
            Column("exact graph", EXACT, sparse=True),
        ),
        lines=(
            Line("two cores: SIFT, 100,000 × 128, k = 15, recall=0.97", {**EPYC_AVX512, "case": "sift-100k"}),
            Line("one H100: SIFT, 1,000,000 × 128, k = 10, recall=0.99", {**H100, "case": "sift-1m"}),
            Line("one H100: filter responses, 1,000,000 × 960, k = 10, recall=0.95", {**H100, "case": "gist-1m"}),
        ),
    ),
    "graphs-curves-epyc": Table(
        where={"suite": "nn_descent", **EPYC_AVX512},
        head="seconds at recall@10",
        columns=(
            Column("tonari, recall=0.97", at_recall(), {"who": "tonari nn_descent", "parameters.recall": 0.97}),
            Column("recall=0.99", at_recall(), {"who": "tonari nn_descent", "parameters.recall": 0.99}),
            Column(
                "pynndescent, 16 neighbours", at_recall(), {"who": "pynndescent", "parameters": {"n_neighbors": 16}}
            ),
            Column("24", at_recall(), {"who": "pynndescent", "parameters": {"n_neighbors": 24}}),
            Column("48", at_recall(), {"who": "pynndescent", "parameters": {"n_neighbors": 48}}),
            Column("random start, 14 rounds", at_recall(), {"who": "tonari random start", "parameters.rounds": 14}),
            Column("exact (tonari)", seconds(), {"who": "tonari exact"}),
        ),
        lines=tuple(Line(label, {"case": case}) for label, case in CURVES),
    ),
    "graphs-probes-epyc": Table(
        where={"suite": "nn_descent", "case": "curve-sift", "who": "tonari nn_descent, probes", **EPYC_AVX512},
        head="clusters that a block of points is compared with",
        columns=tuple(Column(str(count), at_recall(), {"parameters.probes": count}) for count in (1, 2, 4, 8, 16)),
        lines=(Line("seconds at recall@10, SIFT, 100,000 × 128"),),
    ),
    "graphs-curve-h100": Table(
        where={"suite": ("nn_descent", "wang2021"), "case": "curve-sift", **H100},
        columns=(
            Column("seconds", seconds(bold=True)),
            Column("recall@10 (95 %)", AT_10),
            Column("over tonari's seconds", over(BEST)),
        ),
        lines=(
            Line("tonari, recall=0.99", BEST),
            Line("tonari, recall=0.995", {**BEST, "parameters.recall": 0.995}),
            *(
                Line(f"wang2021 with {how}, {rounds} rounds", {"who": f"wang2021 {how}", "parameters.rounds": rounds})
                for how, counts in (("locks", (8, 14)), ("proposals", (6, 8)))
                for rounds in counts
            ),
            Line("cuVS nn_descent, 10 iterations", {**CUVS, "parameters": {"max_iterations": 10}}),
            Line("20 iterations", {**CUVS, "parameters": {"max_iterations": 20}}),
            Line(
                "10 iterations, graph degree 32",
                {**CUVS, "parameters.graph_degree": 32, "parameters.max_iterations": 10},
            ),
        ),
    ),
}
