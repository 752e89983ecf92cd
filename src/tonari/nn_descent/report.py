"""What a graph by NN-Descent tells about itself."""

from __future__ import annotations

import dataclasses
import time
from dataclasses import dataclass
from typing import Any, NamedTuple

from tonari.metrics.recall import Recall


class RoundReport(NamedTuple):
    """One round.

    Attributes
    ----------
    phi : float
        Sum of all distances in the graph after it (wang2021, equation 3), which no round makes worse once lists are
        full.
    changed : int
        Neighbours that the graph did not have before it.
    """

    phi: float
    changed: int


@dataclass(frozen=True)
class DescentReport:
    """How far a graph by NN-Descent, or a merged one, has come.

    Attributes
    ----------
    target : float
        The recall that was asked for.
    estimate : tonari.metrics.recall.Recall
        Recall of a random sample of rows against the exact answer, with its interval. Of a merged graph, that of the
        side where it is less.
    reached : bool
        Whether the lower end of the interval reaches the target.
    start : str
        "clusters", "random" or "graph".
    rounds : tuple of RoundReport
    seconds : float
        Of the call that made the graph, from its start until the graph was there.
    """

    target: float
    estimate: Recall
    reached: bool
    start: str
    rounds: tuple[RoundReport, ...]
    seconds: float

    def __str__(self) -> str:
        here = self.estimate
        return (
            f"recall {here.by_distance:.5g} ({here.low:.5g} to {here.high:.5g}, 95 %, from {here.rows:,} rows) "
            f"of {self.target:g} {'reached' if self.reached else 'not reached'} in {len(self.rounds)} "
            f"round{'' if len(self.rounds) == 1 else 's'}"
        )

    def taken(self, started: float) -> DescentReport:
        """The report of a call that began at `started`, by time.perf_counter, and ends now."""
        return dataclasses.replace(self, seconds=time.perf_counter() - started)

    def as_dict(self) -> dict[str, Any]:
        """The fields as plain values, for JSON."""
        return dataclasses.asdict(self) | {"rounds": [made._asdict() for made in self.rounds]}

    @classmethod
    def from_dict(cls, facts: dict[str, Any]) -> DescentReport:
        """The report from what :meth:`as_dict` gave."""
        rounds = tuple(RoundReport(**made) for made in facts["rounds"])
        return cls(**facts | {"estimate": Recall(**facts["estimate"]), "rounds": rounds})
