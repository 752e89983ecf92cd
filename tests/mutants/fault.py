"""The record of a deliberate fault."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Fault:
    """A text that occurs once in a file, and its replacement.

    Attributes
    ----------
    name : str
        Begins with the room, so that ``--only 'exact-*'`` takes a room's faults.
    file : str
    old, new : str
    why : str
        What is wrong then.
    tests : tuple of str
        Files, or tests as pytest names them, that most likely see it. Default: those of the room.
    """

    name: str
    file: str
    old: str
    new: str
    why: str
    tests: tuple[str, ...] = ()
