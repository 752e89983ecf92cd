"""wang2021, GNND: its rounds, with locks and without, on the curves of recall against time (CUDA)."""

from __future__ import annotations

from typing import Any

from ...harness.case import Case, Suite
from ...harness.proof.graph import GraphTruth
from ...harness.proof.neighbors import Answer
from ...harness.rows import merged
from ...harness.run import Run
from ...suites.nn_descent import SUITE as NN_DESCENT
from ...suites.nn_descent.contestants import PROOF, SEED, OurGraph, sampled
from ...suites.nn_descent.curves import ROUNDS, curve, one_by_one
from . import rounds as pushing


class PushedGraph(OurGraph):
    """A graph by these rounds, as a contestant of the suite nn_descent."""

    def __init__(self, run: Run, case: Case, update: str, rounds: int) -> None:
        sizes = {"list_size": pushing.LIST_SIZE, "samples": pushing.SAMPLES}
        super().__init__(run, case, f"wang2021 {update}", rounds=rounds, **sizes)
        self._update = update

    def _graph(self, rows: int | None) -> Any:
        return pushing.build(self._points[:rows], self._case.k, update=self._update, seed=SEED, **self.settings)

    def judged(self, truth: GraphTruth) -> dict[str, Any]:
        """Behind locks what is made again may be another graph, and is proved again."""
        if self._update == "locks":
            self._proved = None
        return super().judged(truth)

    def _facts(self, truth: GraphTruth, found: Answer) -> dict[str, Any]:
        facts = {"proof": PROOF, "proved": truth.check(found, self._case.k)}
        extras = {"start": "random", "rounds": self.settings["rounds"]}
        return merged(facts, truth.columns(sampled(found, truth), self._case.k), {"extras": extras})


def pushed(run: Run, case: Case) -> None:
    """A row for every update and number of rounds, as long as there is time."""
    one_by_one(run, case, [PushedGraph(run, case, update, rounds) for update in pushing.UPDATES for rounds in ROUNDS])


SUITE = Suite(
    "wang2021",
    NN_DESCENT.results,
    tuple(
        case.resized(work=pushed, peers=(), rare=False)
        for case in NN_DESCENT.cases
        if case.device == "cuda" and case.work is curve
    ),
    libraries=NN_DESCENT.libraries,
)
