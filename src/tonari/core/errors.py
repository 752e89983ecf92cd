"""Exceptions that callers tell apart. Bad arguments are plain TypeError and ValueError."""

from __future__ import annotations


class Unsupported(ValueError):
    """The request is well formed, but this method, device or machine cannot answer it."""


class BudgetExceeded(ValueError):
    """The request does not fit into the memory that it may use; the message says how much it needs."""
