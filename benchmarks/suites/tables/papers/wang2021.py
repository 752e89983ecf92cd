"""Claims of wang2021 (GNND, GGM, graphs larger than a GPU), on a GeForce RTX 3090."""

# ruff: noqa: RUF001 (tables are written with the signs of mathematics)

from __future__ import annotations

from ....harness.report.results import Where
from .claims import RECALL, SECONDS, Claim, always, at_most, replaced, run
from .measures import entry, fastest, over, relative, seconds, speed_up

CURVE = {"suite": ("wang2021", "nn_descent"), "case": "curve-sift", "device": "cuda"}
GNND = ("wang2021 locks", "tonari gnnd*")
PULL = {**CURVE, "who": "tonari nn_descent", "parameters.recall": 0.99}
LOCKS = {**CURVE, "who": "wang2021 locks", "parameters.rounds": 8}
CUVS = {**CURVE, "who": "cuvs nn_descent", "parameters": {"max_iterations": 10}}
ROUNDS = (4, 6, 8, 10, 14)
MERGE = {"suite": "nn_descent", "case": "merge-1m"}
MILLION = {"suite": "nn_descent", "device": "cuda", "case": "sift-1m"}
LARGE = {"suite": "shards", "device": "cuda"}
CLUSTERS = "tonari build_graph clusters"
SHARDS = {**LARGE, "case": "100m", "who": CLUSTERS}
GGM = {**LARGE, "case": "10m-ggm", "who": "tonari build_graph ggm"}
WHOLE = {**LARGE, "case": "10m-gnnd", "who": "tonari build_graph ggm gnnd"}


def _ablation(update: str, rounds: int, n: int = 10**6) -> Where:
    case = "ablation-sift" if n == 10**6 else "ablation-sift-100k"
    return {"suite": "wang2021", "case": case, "who": f"wang2021 {update}", "parameters.rounds": rounds}


def _phi(who: str) -> Where:
    return {"suite": "wang2021", "case": "phi-sift", "who": who, "extras.round": 14}


def _command(case: str) -> str:
    return run(f"wang2021 --device cuda --case {case}")


def _shards(case: str) -> str:
    return run(f"shards --device cuda --case {case}")


def _ten_million(title: str, case: str, where: Where) -> tuple[Claim, Claim]:
    """Return the claims about the recall and the time of a graph of 10⁷ points."""
    recall, time = "0.956 for 10⁸ points (6.4, table 2)", "around 60 s, SIFT10M on one GPU (6.3)"
    return (
        Claim(title, recall, _shards(case), entry(where, "recall"), 0.956, always, RECALL),
        Claim("Time of that graph", time, _shards(case), seconds(where), 60, at_most, SECONDS),
    )


CLAIMS = (
    Claim(
        "φ falls as in classic NN-Descent: φ of gnnd over φ of pull after 14 rounds from random neighbours",
        "“largely overlaps” (4.3, fig. 4)",
        _command("phi-sift"),
        relative(entry(_phi("tonari gnnd"), "extras.phi"), entry(_phi("tonari random start"), "extras.phi")),
        1.01,
        at_most,
    ),
    Claim(
        "Inserting only the nearest is faster than inserting all: variant r2 compared with r1, 10⁵ rows",
        "more than 3× (6.2, fig. 5)",
        _command("ablation-sift-100k"),
        over(
            {
                f"{rounds} rounds": speed_up(_ablation("r2", rounds, 10**5), _ablation("r1", rounds, 10**5))
                for rounds in ROUNDS
            }
        ),
        3,
    ),
    Claim(
        "One lock per segment is faster than one lock per list",
        "5 % to 8 % (6.2, fig. 5)",
        _command("ablation-sift"),
        over({f"{rounds} rounds": speed_up(_ablation("locks", rounds), _ablation("r2", rounds)) for rounds in ROUNDS}),
        1.05,
    ),
    Claim(
        "Faster than classic NN-Descent on one core",
        "100× to 250×; 240× on SIFT1M (6.3)",
        "tonari has no classic NN-Descent for one core",
    ),
    Claim(
        "Time of a graph of 10⁶ SIFT × 128 at recall@10 0.99, by the paper's rounds",
        "less than 4 s (6.3, fig. 6)",
        _command("curve-sift"),
        fastest({**CURVE, "who": GNND}, 0.99),
        4,
        at_most,
        SECONDS,
    ),
    Claim(
        "Time of a graph of 10⁷ points at about the same recall; here a mixture × 96, k = 32, by the pulling rounds",
        "around 60 s (6.3)",
        run("nn_descent --device cuda --case clustered-10m"),
        seconds({"suite": "nn_descent", "case": "clustered-10m", "device": "cuda", "who": "tonari nn_descent"}),
        60,
        at_most,
        SECONDS,
    ),
    Claim(
        "Faster than the exact graph of the same points, 10⁶ SIFT × 128; here by the pulling rounds",
        "4 s against 21 s of FAISS-BF, 5.25× (6.3)",
        run("nn_descent --device cuda --case sift-1m"),
        speed_up(*({**MILLION, "who": who} for who in ("tonari nn_descent", "tonari exact"))),
        5.25,
    ),
    Claim(
        "Faster than other graphs on the GPU; here the paper's rounds compared with cuVS nn_descent, 10 iterations",
        "2.5× to 5× over GGNN (6.3)",
        _command("curve-sift"),
        speed_up(LOCKS, CUVS),
        2.5,
        always,
    ),
    Claim("Faster than GGNN itself", "2.5× to 5× (6.3)", "GGNN is in no package index"),
    Claim(
        "Merging two halves is much faster than building the whole graph; here by the pulling rounds",
        "“much faster” (5.1)",
        run("nn_descent --device cuda --case merge-1m"),
        speed_up({**MERGE, "who": "tonari merge"}, {**MERGE, "who": "tonari nn_descent"}),
        rule=always,
    ),
    Claim(
        "Time in which GGM merges two halves of SIFT1M to recall@10 0.98, the recall of the halves",
        "less than 4 s for a whole build (6.3); no number for GGM (fig. 7)",
        _command("ggm-sift"),
        fastest({"suite": "wang2021", "case": "ggm-sift", "who": "tonari merge gnnd"}, 0.98),
        4,
        at_most,
        SECONDS,
    ),
    Claim("GGM finds more than GGNN's merge", "5 % to 10 % of recall@10 (6.4, fig. 7)", "GGNN is in no package index"),
    Claim(
        "Time of a graph of 10⁸ points; here 10⁸ × 96, similar to SIFT, by the route *clusters*",
        "2888 s, DEEP100M; 3033 s, SIFT100M (6.4, table 2)",
        _shards("100m"),
        seconds(SHARDS),
        2888,
        at_most,
        SECONDS,
    ),
    Claim(
        "Recall@10 of that graph",
        "0.956, DEEP100M; 0.966, SIFT100M (6.4, table 2)",
        _shards("100m"),
        entry(SHARDS, "recall"),
        0.956,
        always,
        RECALL,
    ),
    *_ten_million(
        "Recall@10 of a graph of 10⁷ points by the paper's method: GNND for each shard, GGM for all pairs of shards",
        "10m-gnnd",
        WHOLE,
    ),
    *_ten_million(
        "Recall@10 of a graph of 10⁷ points by pulling rounds, in which all pairs of shards are merged (GGM)",
        "10m-ggm",
        GGM,
    ),
    Claim(
        "A graph of 10⁹ points",
        "76 h at recall@10 0.951, DEEP1B; 77 h at 0.955, SIFT1B (6.4, table 2)",
        "our machines have too little memory; the largest case has 2 × 10⁸ points (`200m-two`)",
    ),
    Claim(
        "Better than FAISS-IVFPQ",
        "recall@10 0.966 against 0.730 (6.4, table 2)",
        "FAISS-IVFPQ builds no graph",
    ),
    Claim(
        "Several GPUs share the work: two compared with one, 4 × 10⁷ points, by the route *clusters*",
        "“easy to benefit” (5.1)",
        _shards("40m-two"),
        speed_up(
            *({**LARGE, "case": "40m-two", "who": who} for who in (f"{CLUSTERS} on 2 GPUs", CLUSTERS)),
        ),
        rule=always,
    ),
    Claim(
        "Instead: pulling rounds from clusters compared with the paper's rounds, recall@10 0.99",
        "",
        _command("curve-sift"),
        speed_up(PULL, LOCKS),
        rule=replaced,
    ),
)
