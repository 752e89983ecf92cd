"""What `auto` decided, and why: every method with what it is expected to take, or the sentence why not."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

PATIENCE = 2.0  # times what an exact graph is expected to take, NN-Descent may


class Candidate(NamedTuple):
    """One method that was considered.

    Attributes
    ----------
    method : str
    seconds : float
        Expected; NaN where the method was refused.
    total_bytes : int
        Memory beyond the input; 0 where the method was refused.
    refused : str
        Why the method cannot or should not be taken; "" where it can.
    """

    method: str
    seconds: float
    total_bytes: int
    refused: str = ""

    def __str__(self) -> str:
        if self.refused:
            return f"{self.method:>10}  {self.refused}"
        return f"{self.method:>10}  {self.seconds:.3g} s, {self.total_bytes / 2**20:,.1f} MiB"


class Decision(NamedTuple):
    """The plan that is taken, and what else is known of it.

    Attributes
    ----------
    plan : Plan
    prepared : Any
        The points prepared by the plan, where that was needed to find out.
    seconds : float
        Expected.
    candidates : tuple of Candidate
        All methods, in the order in which they were considered.
    instead : Decision, optional
        What follows where the recall that the plan asks for is out of its reach.
    """

    plan: Any
    prepared: Any = None
    seconds: float = math.nan
    candidates: tuple[Candidate, ...] = ()
    instead: Decision | None = None

    @property
    def patience(self) -> float | None:
        """Seconds after which the other decision is taken."""
        return None if self.instead is None else PATIENCE * self.instead.seconds

    def __str__(self) -> str:
        lines = [f"method={self.plan.method!r}, {self.seconds:.3g} s expected", *map(str, self.candidates)]
        return "\n".join(lines)
