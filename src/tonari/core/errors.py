"""Exceptions that callers may want to handle differently. Invalid arguments raise plain TypeError or ValueError."""

from __future__ import annotations


class Unsupported(ValueError):
    """The request is valid, but this method, device or machine does not support it."""


class BudgetExceeded(ValueError):
    """The request needs more memory than its budget allows; the message says how much it needs.

    Attributes
    ----------
    least : int, optional
        A budget in bytes that would be enough, if known.
    """

    def __init__(self, message: str, *, least: int | None = None) -> None:
        super().__init__(message)
        self.least = least
