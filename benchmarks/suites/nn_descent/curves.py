"""Recall against time: all contestants, each with a range of settings, on the same points.

tonari builds graphs for several recalls and for several numbers of probes. It also runs several numbers of rounds from
random lists of wang2021's size (64 neighbours, of which the first 32 are sampled, with as many reverse neighbours);
`papers.wang2021` has the paper's own rounds on the same cases. pynndescent runs with few rounds and with longer lists,
cuVS with several degrees and rounds, and the exact engine once.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

from ...harness.case import Case
from ...harness.peers import graphs as peers
from ...harness.run import Run, seconds_of
from .build import clocked, rivals
from .contestants import DESCENT, EXACT, SEED, Contestant, OurGraph, truth_of

RANDOM, PROBED = "tonari random start", f"{DESCENT}, probes"
RECALLS = (0.8, 0.9, 0.95, 0.97, 0.99, 0.995)
PROBES = (1, 2, 4, 8, 16)
ROUNDS = (4, 6, 8, 10, 14)
# Lists and samples as in wang2021. The number of rounds is fixed, because a sample of 1,000 rows cannot show a recall
# of 0.999.
PAPER = {
    "start": "random",
    "list_size": 64,
    "n_hubs": 32,
    "reverse": 32,
    "neighbors_per_hub": 32,
    "light_rounds": 0,
    "recall": 0.999,
    "sample": 1000,
}
PYNNDESCENT: tuple[dict[str, Any], ...] = (
    {"n_iters": 1},
    {"n_iters": 3},
    {},
    {"n_neighbors": 16},
    {"n_neighbors": 24},
    {"n_neighbors": 32},
    {"n_neighbors": 48},
)
CUVS: tuple[dict[str, Any], ...] = (
    {"graph_degree": 32, "intermediate_graph_degree": 48, "max_iterations": 4},
    {"graph_degree": 32, "intermediate_graph_degree": 48, "max_iterations": 10},
    {"max_iterations": 4},
    {"max_iterations": 10},
    {"max_iterations": 20},
)


def ours() -> list[tuple[str, dict[str, Any]]]:
    """Return (name, settings) of tonari for each point of its curves."""
    found: list[tuple[str, dict[str, Any]]] = [(DESCENT, {"recall": recall}) for recall in RECALLS]
    found += [(PROBED, {"recall": 0.99, "n_probe": probes}) for probes in PROBES]
    return found + [(RANDOM, PAPER | {"rounds": rounds}) for rounds in ROUNDS]


def curve(run: Run, case: Case) -> None:
    """Build a graph and write a row for each point of each curve, until the run's time is up."""
    with contextlib.ExitStack() as stack:
        contestants: list[Contestant] = [OurGraph(run, case, EXACT, method="exact")]
        contestants += [
            OurGraph(run, case, name, method="nn-descent", seed=SEED, **settings) for name, settings in ours()
        ]
        for peer in rivals(stack, run, case):
            settings = PYNNDESCENT if peer.name == peers.PYNNDESCENT else CUVS
            # settings whose lists have fewer than k neighbours are left out
            contestants += [
                peer.with_settings(given, named=False)
                for given in settings
                if given.get("n_neighbors", case.k + 1) > case.k
            ]
        one_by_one(run, case, contestants)


def one_by_one(run: Run, case: Case, contestants: Sequence[Contestant]) -> None:
    """Build and verify the graph of each contestant and write its row, until the run's time is up."""
    truth = truth_of(run, case)
    slowest = 0.0
    for one in contestants:
        if not run.wants(one.name):
            continue
        if not run.reaches(2 * slowest):
            run.write(case, [{"who": one.name, "note": "not reached"}])
            continue
        for name, (timing, facts) in clocked(run, case, [one], truth).items():
            slowest = max(slowest, timing.median)
            run.write(case, [{"who": name} | facts | seconds_of(timing)])
