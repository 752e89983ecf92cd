"""Exceptions that callers may want to tell apart. Bad arguments are plain TypeError and ValueError."""

from __future__ import annotations


class Unsupported(ValueError):
    """The request is well formed, but this machine, device or method cannot answer it exactly."""
