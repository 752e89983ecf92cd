"""gieseke2014, buffer k-d trees: its figures, with tonari's traversal of the tree (walk) and the paper's (buffered).

On CUDA, all sizes are the paper's own.
"""

from __future__ import annotations

from typing import Any

from ...harness.case import Case, Suite
from ...suites.kdtree import SUITE as KDTREE
from . import figures, plots, processors, rounds

MILLION = 1_000_000


def _cases() -> list[Case]:
    found = []
    for device, m, exact_rows in (("cpu", 100_000, 4096), ("cuda", 10 * MILLION, MILLION)):
        common: dict[str, Any] = {"device": device, "n": MILLION, "m": m, "k": 10, "data": "magnitudes"}
        common |= {"prepared": True}
        for d in (5, 10):
            for figure, work in (("2", figures.heights), ("3a", figures.orders)):
                found.append(Case(f"fig{figure}-d{d}", d=d, figure=figure, cost=180, work=work, **common))
        common |= {"d": 10, "peers": ("pykdtree",)}
        timed = {"exact_rows": exact_rows, "cost": 150}
        truth_k = max(figures.KS)
        found.append(Case("fig5-d10", figure="5", truth_k=truth_k, work=figures.neighbours, **common, **timed))
        found.append(Case("fig6-d10", figure="6", work=figures.sizes, **common, **timed))
        fewer = common | {"m": 100_000 if device == "cpu" else MILLION, "peers": ()}
        found.append(Case("rounds-d10", cost=180, work=rounds.compare, **fewer))
        found.append(Case("fig4-d10", figure="4", cost=90, work=rounds.phases, **common | {"peers": ()}))
    of_table = common | {"n": 2 * MILLION, "peers": ()}
    found.append(Case("table2-d10", exact_rows=MILLION, rare=True, cost=120, work=figures.table, **of_table))
    found.append(Case("processors-d10", rare=True, cost=60, work=processors.compare, **of_table))
    wide = of_table | {"d": 27, "data": "sift", "m": MILLION}
    found.append(Case("table2-d27", exact_rows=MILLION, rare=True, cost=120, work=figures.table, **wide))
    return found


SUITE = Suite("gieseke2014", "kdtree", tuple(_cases()), libraries=KDTREE.libraries, figures=plots.figures)
