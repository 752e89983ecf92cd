"""Exceptions that callers can tell apart. Invalid arguments raise plain TypeError or ValueError."""

from __future__ import annotations


class Unsupported(ValueError):
    """The request is valid, but this method, device or machine does not support it."""


class BudgetExceeded(ValueError):
    """The request needs more memory than it may use; the message says how much it needs."""
