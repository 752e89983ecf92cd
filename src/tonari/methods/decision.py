"""The record of a decision: which method answers, with which plan, and why.

A method takes further decisions while it runs, such as the columns of a screen: ``tonari.core.trail`` records them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from tonari.core.method import Method
from tonari.core.plan import Plan

_PATIENCE = 2.0  # NN-Descent gives up after the work that is expected to take this many times as long as the fallback


class Decision(NamedTuple):
    """A method, its plan, and what the decision was based on.

    Attributes
    ----------
    method : Method
    plan : Plan
    prepared : optional
        The points as the method prepared them, if that was needed to decide.
    seconds : float
        Expected duration, given what is known of the data.
    reason : str
        Why this method; "" if the caller asked for it.
    instead : Decision, optional
        The fallback if the method fails to reach the recall in its plan.
    by_data : bool
        Whether it depends on the values of the rows, and not on the sizes alone.
    """

    method: Any
    plan: Any
    prepared: Any = None
    seconds: float = 0.0
    reason: str = ""
    instead: Decision | None = None
    by_data: bool = False

    @property
    def patience(self) -> float | None:
        """How many times the work that its plan expects the method may do; None if there is no fallback.

        Both durations are those that plans expect: no clock decides which graph is built.
        """
        return None if self.instead is None else _PATIENCE * self.instead.seconds / self.plan.seconds


def by_plan(method: Method, plan: Plan, prepared: Any = None, reason: str = "") -> Decision:
    """Return the decision for a plan, with the seconds that the plan itself expects."""
    return Decision(method, plan, prepared, plan.seconds, reason)
