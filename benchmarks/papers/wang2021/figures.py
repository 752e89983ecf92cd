"""wang2021's figures 4 to 7 as rows of results.

- Figure 4: φ, the sum of all distances, after each round of tonari and of the paper, from the same 32 random
  neighbours.
- Figure 5: recall against time of the ablation: r1 inserts all matched pairs, r2 the nearest pair of each batch with
  one lock per list, and "locks" the same with a lock per segment.
- Figure 6: recall against time of the paper's update, of its variant without locks, and of tonari's "gnnd", which
  measures its recall after each round. The suite nn_descent has tonari's default and the peers on the same cases.
- Figure 7: recall against time of merging two halves, by tonari's rounds and by the paper's.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from ...harness.case import Case
from ...harness.rows import merged
from ...harness.run import Run
from ...suites.nn_descent.contestants import SEED, truth_of
from ...suites.nn_descent.curves import PAPER, RANDOM, RECALLS, ROUNDS, one_by_one
from .contestants import ENDLESS, GNND, MergedBy, PushedGraph, Watched, gnnd

PHI_ROUNDS = 14
# With lists of 32 entries, both builds start from the same 32 random neighbours (the paper's p), which "gnnd" draws.
PULLED = PAPER | {"list_size": PAPER["n_hubs"], "rounds": PHI_ROUNDS}
PUSHED = ENDLESS | {"update": "gnnd", "start": "random", "samples": PAPER["n_hubs"], "rounds": PHI_ROUNDS}
ABLATION = ("locks", "r2", "r1")  # updates of figure 5; r1 takes minutes for a million points
UPDATES = ("locks", "proposals")
SAMPLES = (16, 32)  # values of p, which the paper varies


def phi(run: Run, case: Case) -> None:
    """Figure 4: write a row for every round."""
    truth = truth_of(run, case)
    for name, settings in ((RANDOM, PULLED), (GNND, PUSHED)):
        if run.wants(name):
            one = Watched(run, case, name, method="nn-descent", seed=SEED, **settings)
            run.guarded(case, name, functools.partial(_course, run, case, one, truth))


def _course(run: Run, case: Case, one: Watched, truth: Any) -> None:
    one.warm()
    one.call()
    facts = {"who": one.name, "parameters": one.settings} | one.judged(truth)
    extras = {"start": "random"}
    kept = {name: facts[name] for name in ("who", "parameters", "proof", "proved")}
    run.write(case, [merged(kept, {"extras": extras | made}) for made in one.course()])


def ablation(run: Run, case: Case) -> None:
    """Figure 5: write a row for every update of the ablation and every number of rounds."""
    _pushed(run, case, ABLATION)


def curve(run: Run, case: Case) -> None:
    """Figure 6: write a row for every update and every number of rounds, until the run's time is up."""
    _pushed(run, case, UPDATES)
    one_by_one(run, case, [gnnd(run, case, samples, rounds) for samples in SAMPLES for rounds in ROUNDS])


def _pushed(run: Run, case: Case, updates: Sequence[str]) -> None:
    one_by_one(run, case, [PushedGraph(run, case, update, rounds) for update in updates for rounds in ROUNDS])


def ggm(run: Run, case: Case) -> None:
    """Figure 7: write a row for every update and every requested recall."""
    named = [(update, recall) for update in ("pull", "gnnd") for recall in RECALLS]
    one_by_one(run, case, [MergedBy(run, case, *each) for each in named])
