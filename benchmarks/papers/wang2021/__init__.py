"""wang2021, GNND: figures 4 to 7, by tonari's update "gnnd" and by the paper's rounds with other updates."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ...harness.case import Case, Suite
from ...harness.run import Run
from ...suites.nn_descent import SUITE as NN_DESCENT
from ...suites.nn_descent import curves
from . import figures, plots

# For each first part of a case's name: the paper's figure, and the function that measures it.
FIGURES: dict[str, tuple[str, Callable[[Run, Case], None]]] = {
    "curve": ("6", figures.curve),
    "phi": ("4", figures.phi),
    "ablation": ("5", figures.ablation),
    "ggm": ("7", figures.ggm),
}
FEW = 100_000


def _cases() -> Iterator[Case]:
    """Yield the paper's figures as cases on the data of the suite nn_descent; as there, only descriptors are merged."""
    for case in NN_DESCENT.cases:
        if case.device == "cuda" and case.work is curves.curve:
            for name, (figure, work) in FIGURES.items():
                if name != "ggm" or case.data == "sift":
                    named = {"name": f"{name}-{case.data}", "figure": figure, "work": work}
                    yield case.resized(split=case.n // 2 if name == "ggm" else 0, peers=(), rare=False, **named)
            if case.data == "sift":  # the update r1 takes minutes for a million rows
                named = {"name": f"ablation-{case.data}-100k", "figure": "5", "work": figures.ablation}
                yield case.resized(n=FEW, m=FEW, peers=(), rare=False, cost=60.0, **named)


SUITE = Suite(
    "wang2021",
    NN_DESCENT.results,
    tuple(_cases()),
    libraries=NN_DESCENT.libraries,
    figures=plots.figures,
)
