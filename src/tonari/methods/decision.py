"""The record of a decision: which method answers, with which plan, and why."""

from __future__ import annotations

from typing import Any, NamedTuple

from tonari.core.method import Method
from tonari.core.plan import Plan

_PATIENCE = 2.0  # NN-Descent gives up after the work that is expected to take this many times as long as the fallback


class Decision(NamedTuple):
    """A method, its plan, and the basis of the decision.

    Attributes
    ----------
    method : Method
    plan : Plan
    prepared : optional
        The prepared points, if the decision needed them.
    seconds : float
        Expected duration, given the known properties of the data.
    reason : str
        The reason for this method; "" if the caller named it.
    instead : Decision, optional
        The fallback if the method fails to reach the recall in its plan.
    by_data : bool
        Whether the decision depends on the values of the rows, in addition to the sizes.
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
        """The factor on the planned work after which the method gives up; None without a fallback.

        It follows from expected durations only, so measured times never decide which graph is built.
        """
        return None if self.instead is None else _PATIENCE * self.instead.seconds / self.plan.seconds


def by_plan(method: Method, plan: Plan, prepared: Any = None, reason: str = "") -> Decision:
    """Return the decision for a plan, with the expected seconds of the plan."""
    return Decision(method, plan, prepared, plan.seconds, reason)
