"""The report of an NN-Descent run: estimated recall, rounds, time."""

from __future__ import annotations

import dataclasses
import time
from dataclasses import dataclass
from typing import Any, NamedTuple

from tonari.io import schema
from tonari.metrics.recall import Recall
from tonari.nn_descent.updates import PULL


class RoundReport(NamedTuple):
    """The effect of one round on the graph.

    Attributes
    ----------
    phi : float
        Sum of all distances in the graph after the round (wang2021, equation 3). It never grows once all lists are
        full.
    changed : int
        The number of neighbours that the graph did not have before the round.
    """

    phi: float
    changed: int


@dataclass(frozen=True)
class DescentReport:
    """The recall of a graph that NN-Descent built or merged, and the rounds of the run.

    Attributes
    ----------
    target : float
        The requested recall.
    estimate : tonari.metrics.recall.Recall
        The recall, measured on a random sample of rows, with its confidence interval. For a merged graph, the recall of
        the side whose recall is lower.
    reached : bool
        Whether the lower end of the interval reaches the target.
    start : str
        "clusters", "random" or "graph".
    rounds : tuple of RoundReport
    seconds : float
        Duration of the call that made the graph.
    update : str
        "pull" or "gnnd", as in :class:`tonari.nn_descent.plan.DescentPlan`. With "gnnd" another run with the same seed
        may make another graph.
    """

    target: float
    estimate: Recall
    reached: bool
    start: str
    rounds: tuple[RoundReport, ...]
    seconds: float
    update: str = PULL  # files of earlier versions lack this field

    def __str__(self) -> str:
        here = self.estimate
        return (
            f"recall {here.by_distance:.5g} ({here.low:.5g} to {here.high:.5g}, 95 %, from {here.rows:,} rows) "
            f"of {self.target:g} {'reached' if self.reached else 'not reached'} in {len(self.rounds)} "
            f"round{'' if len(self.rounds) == 1 else 's'}"
        )

    def taken(self, started: float) -> DescentReport:
        """Return this report with the seconds since `started`, a value of time.perf_counter."""
        return dataclasses.replace(self, seconds=time.perf_counter() - started)

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as plain values, for JSON."""
        return dataclasses.asdict(self) | {"rounds": [made._asdict() for made in self.rounds]}

    @classmethod
    def from_dict(cls, facts: dict[str, Any]) -> DescentReport:
        """Make a report from the result of :meth:`as_dict`; raise ValueError for anything else."""
        share, count = schema.real(0, 1), schema.whole(0)
        fields = {
            "target": share,
            "estimate": lambda value: isinstance(value, dict),
            "reached": schema.flag,
            "start": schema.text,
            "rounds": schema.list_of(lambda value: isinstance(value, dict)),
            "seconds": schema.real(0),
        }
        schema.check(facts, fields, "report", optional={"update": schema.text})
        shares = dict.fromkeys(("by_index", "by_distance", "low", "high"), share)
        schema.check(facts["estimate"], shares | {"rows": count, "k": count}, "estimate")
        for made in facts["rounds"]:
            # Sums of distances may be infinite; sums of similarities may be negative.
            schema.check(made, {"phi": lambda value: type(value) in (int, float), "changed": count}, "round")
        rounds = tuple(RoundReport(**made) for made in facts["rounds"])
        return cls(**facts | {"estimate": Recall(**facts["estimate"]), "rounds": rounds})
