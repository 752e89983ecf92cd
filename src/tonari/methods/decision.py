"""What was decided: which method answers, by which plan, and why."""

from __future__ import annotations

from typing import Any, NamedTuple

from tonari.core.method import Method
from tonari.core.plan import Plan

_PATIENCE = 2.0  # times what an exact graph is expected to take, NN-Descent may


class Decision(NamedTuple):
    """A method and its plan, and what else is known of it.

    Attributes
    ----------
    method : Method
    plan : Plan
    prepared : optional
        The points prepared by it, where that was needed to decide.
    seconds : float
        Expected, with what the data have shown so far.
    reason : str
        Why this method; "" where the caller asked for it.
    instead : Decision, optional
        What follows where the recall that the plan asks for is out of its reach.
    """

    method: Any
    plan: Any
    prepared: Any = None
    seconds: float = 0.0
    reason: str = ""
    instead: Decision | None = None

    @property
    def patience(self) -> float | None:
        """Seconds after which the other choice is taken."""
        return None if self.instead is None else _PATIENCE * self.instead.seconds


def by_plan(method: Method, plan: Plan, prepared: Any = None, reason: str = "") -> Decision:
    """The decision for a plan that takes what it expects."""
    return Decision(method, plan, prepared, plan.seconds, reason)
