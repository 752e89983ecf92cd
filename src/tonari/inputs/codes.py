"""The argument `codes` of an Index: a compact form of the rows, which is kept in memory for the screen.

The original rows are not copied: they stay in a file, in host memory, or in an object that returns them. The codes rule
out most points, and only the original rows of the remaining candidates are read.
"""

from __future__ import annotations

from typing import Any

CODES = ("auto", "float16", "int8", "int4")


def check_codes(codes: Any) -> str:
    """Check the argument `codes`, one of CODES, and return it.

    >>> check_codes("int8")
    'int8'
    """
    if isinstance(codes, str) and codes in CODES:
        return codes
    raise ValueError(f"codes={codes!r}: expected one of {', '.join(map(repr, CODES))}")
