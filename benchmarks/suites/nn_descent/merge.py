"""The merge of two graphs, compared with building the graph of all points."""

from __future__ import annotations

import warnings
from typing import Any

from ...harness.case import Case
from ...harness.run import Run, seconds_of
from .build import clocked, verdicts, write
from .contestants import DESCENT, SEED, WARM_ROWS, Contestant, OurGraph, truth_of

MERGE = "tonari merge"
OF_WHOLE, BELOW_WHOLE = "of the whole build", "recall below the whole build"


class Merged(OurGraph):
    """The merge of two graphs, of the first ``split`` points and of the others, both built before the clock starts."""

    def __init__(self, run: Run, case: Case, **settings: Any) -> None:
        super().__init__(run, case, MERGE, **settings)
        self._halves = self._parts(case.n)

    def _parts(self, rows: int) -> list[tuple[Any, Any]]:
        run, case = self._run, self._case
        cut = max(case.k + 1, round(rows * case.split / case.n))
        sides = [run.device.values(self._points[part]) for part in (slice(cut), slice(cut, rows))]
        given = {"recall": case.target, "seed": SEED}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            return [
                (run.tonari.knn_graph(side, case.k, method="nn-descent", **given, **run.options()), side)
                for side in sides
            ]

    def _graph(self, rows: int | None) -> Any:
        (first, points), (second, others) = self._halves if rows is None else self._parts(rows)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            return self._run.tonari.merge(first, second, points, others, **self.settings, **self._run.options())

    def warm(self) -> dict[str, Any]:
        smaller = min(self._case.split, self._case.n - self._case.split)
        # the small graph for warming up is split in the same ratio, but each part needs more than k points
        if self._case.n > WARM_ROWS and smaller * WARM_ROWS > 2 * self._case.k * self._case.n:
            self._graph(WARM_ROWS)
        return {}


def merge(run: Run, case: Case) -> None:
    """Time two ways to make a case's graph: by building it, and by merging the graphs of two parts."""
    truth = truth_of(run, case)
    given = {"recall": case.target, "seed": SEED}
    contestants: list[Contestant] = [
        OurGraph(run, case, DESCENT, method="nn-descent", **given),
        Merged(run, case, **given),
    ]
    found = clocked(run, case, contestants, truth)
    if MERGE not in found or DESCENT not in found:
        write(run, case, found)
        return
    (whole, of_whole), (timing, facts) = found.pop(DESCENT), found.pop(MERGE)
    measured = {
        OF_WHOLE: timing.median / whole.median,
        BELOW_WHOLE: of_whole["extras"]["recall_10"] - facts["extras"]["recall_10"],
        "recall@10": facts["extras"]["recall_10"],
    }
    row = {"who": MERGE, "ratio": measured[OF_WHOLE]} | facts | seconds_of(timing)
    run.write(case, [row | verdict for verdict in verdicts(run, case.bars, measured)])
    run.write(case, [{"who": DESCENT} | of_whole | seconds_of(whole)])
