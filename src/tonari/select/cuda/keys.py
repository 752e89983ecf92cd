"""The host side of ``kernels/registers/keys.py``, which represents values as integers in the order of the values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tonari.select.request import Request


@dataclass(frozen=True)
class KeyFormat:
    """How values of one dtype are converted to integer keys.

    Attributes
    ----------
    bits : str
        The name of the integer torch dtype that kernels read instead of the values' own dtype.
    infinite : int
        Bits of +inf; 0 for integers.
    wide : bool
        Whether keys have 64 bits instead of 32.
    lowest, highest : int
        The keys of the values that stand for missing entries: -inf and +inf, or the ends of an integer type's range.
    """

    bits: str
    infinite: int
    wide: bool
    lowest: int
    highest: int

    def missing(self, largest: bool) -> int:
        """Return the key of the value that stands for a missing entry, which comes last."""
        return ~self.lowest if largest else self.highest


def _floats(bits: str, infinite: int, wide: bool = False) -> KeyFormat:
    return KeyFormat(bits, infinite, wide, -infinite, infinite)


FORMATS = {
    "float32": _floats("int32", 0x7F800000),
    "float16": _floats("int16", 0x7C00),
    "bfloat16": _floats("int16", 0x7F80),
    "float64": _floats("int64", 0x7FF0000000000000, wide=True),
    "int32": KeyFormat("int32", 0, False, -(2**31), 2**31 - 1),
    "uint8": KeyFormat("uint8", 0, False, 0, 255),
}


def constants_of(request: Request) -> dict[str, Any]:
    """Return the constants that every kernel needs to read the rows of a request."""
    form = FORMATS[request.dtype]
    return {
        "HAS_LENGTHS": request.lengths is not None,
        "INFINITE": form.infinite,
        "LARGEST": request.largest,
        "WIDE": form.wide,
    }


def looks_for_nan(request: Request) -> bool:
    """Whether kernels look for NaN: only if the request asks for it, and only for dtypes that have NaN."""
    return request.check_nan and FORMATS[request.dtype].infinite > 0


def as_bits(values: Any, dtype: str) -> Any:
    """View a tensor as the integers that the kernels read."""
    import torch

    return values.view(getattr(torch, FORMATS[dtype].bits))
