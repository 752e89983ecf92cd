"""The argument `codes` of an Index: the form of the rows that stays in memory.

The original rows stay where they are: in a file, in host memory, or in an object that returns them. Codes rule out
most points, and the original rows of the others are read.
"""

from __future__ import annotations

from typing import Any

CODES = ("auto", "float16", "int8", "int4")


def check_codes(codes: Any) -> str:
    """Return the name of a form of codes; refuse anything else.

    >>> check_codes("int8")
    'int8'
    """
    if isinstance(codes, str) and codes in CODES:
        return codes
    raise ValueError(f"codes={codes!r}: expected one of {', '.join(map(repr, CODES))}")
