"""Contestants that build graphs as wang2021 does: by the rounds of ``rounds``, or by tonari's update "gnnd"."""

from __future__ import annotations

import time
from typing import Any

from ...harness.case import Case
from ...harness.proof.graph import GraphTruth
from ...harness.proof.neighbors import Answer
from ...harness.rows import merged
from ...harness.run import Run
from ...suites.nn_descent.contestants import PROOF, SEED, OurGraph, sampled
from ...suites.nn_descent.curves import PAPER
from ...suites.nn_descent.merge import MERGE, Merged
from . import rounds as pushing

GNND = "tonari gnnd"
# The settings in PAPER by which a build runs a fixed number of rounds and does not stop at a recall.
ENDLESS = {name: PAPER[name] for name in ("recall", "sample")}


class Unrepeatable(OurGraph):
    """A graph whose bits may differ from build to build, so that every build is verified."""

    def judged(self, truth: GraphTruth) -> dict[str, Any]:
        self._proved = None
        return super().judged(truth)


class PushedGraph(OurGraph):
    """A graph built by ``rounds.build``, as a contestant of the suite nn_descent."""

    def __init__(self, run: Run, case: Case, update: str, rounds: int) -> None:
        sizes = {"list_size": pushing.LIST_SIZE, "samples": pushing.SAMPLES}
        super().__init__(run, case, f"wang2021 {update}", rounds=rounds, **sizes)
        self._update = update

    def _graph(self, rows: int | None) -> Any:
        return pushing.build(self._points[:rows], self._case.k, update=self._update, seed=SEED, **self.settings)

    def judged(self, truth: GraphTruth) -> dict[str, Any]:
        """Verify the graph; with locks, a second graph may differ from the first, and is verified again."""
        if self._update != "proposals":
            self._proved = None
        return super().judged(truth)

    def _facts(self, truth: GraphTruth, found: Answer) -> dict[str, Any]:
        facts = {"proof": PROOF, "proved": truth.check(found, self._case.k)}
        extras = {"start": "random", "rounds": self.settings["rounds"]}
        return merged(facts, truth.columns(sampled(found, truth), self._case.k), {"extras": extras})


class Watched(Unrepeatable):
    """A graph that records, for each round, the seconds from the start of the build to the end of the round."""

    began = 0.0

    def __init__(self, *given: Any, **settings: Any) -> None:
        super().__init__(*given, **settings)
        self._ticks: list[float] = []

    def _options(self) -> dict[str, Any]:
        return super()._options() | {"progress": self._tick}

    def _tick(self, done: int, total: int) -> None:
        self._ticks.append(time.perf_counter() - self.began)

    def call(self) -> None:
        self._ticks = []
        self.began = time.perf_counter()
        super().call()

    def course(self) -> list[dict[str, Any]]:
        """Return extras with an entry for each round of the last graph: the round's number, φ and seconds."""
        ends = self._ticks[1:]  # without the first tick, which marks the end of the start
        return [
            {"round": number, "phi": made.phi, "changed": made.changed, "seconds": seconds}
            for number, (made, seconds) in enumerate(zip(self._made.report.rounds, ends, strict=False), 1)
        ]


def gnnd(run: Run, case: Case, samples: int, rounds: int) -> OurGraph:
    """Return a contestant that builds by tonari's update "gnnd" from random lists, with a fixed number of rounds."""
    name = GNND if samples == pushing.SAMPLES else f"{GNND}, p = {samples}"
    settings = ENDLESS | {"samples": samples, "rounds": rounds}
    return Unrepeatable(run, case, name, method="nn-descent", update="gnnd", seed=SEED, **settings)


class MergedBy(Merged):
    """A graph that an update merges from the graphs of two halves (GGM); all updates start from the same two graphs."""

    def __init__(self, run: Run, case: Case, update: str, recall: float) -> None:
        super().__init__(run, case, recall=recall, seed=SEED, update=update)
        self.name = MERGE if update == "pull" else f"{MERGE} {update}"
        self._unrepeatable = update != "pull"

    def _parts(self, rows: int) -> list[tuple[Any, Any]]:
        key = "halves", rows, self._case.split, self._case.k
        found: list[tuple[Any, Any]] = self._run.also(key, lambda: super(MergedBy, self)._parts(rows))
        return found

    def judged(self, truth: GraphTruth) -> dict[str, Any]:
        if self._unrepeatable:
            self._proved = None
        return super().judged(truth)
