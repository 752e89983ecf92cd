"""Choose the instruction set of the CPU kernels: the widest that the machine supports, or the value of TONARI_ISA."""

from __future__ import annotations

import os

from tonari.core import _native


def chosen_isa() -> str:
    """Return the instruction set to use: TONARI_ISA if it is set, else the widest that this machine supports."""
    asked = os.environ.get("TONARI_ISA")
    if asked is None:
        return _native.supported_isas()[-1]
    check_isa(asked)
    return asked


def without_amx(asked: str | None) -> str:
    """Return the requested or default instruction set for kernels without AMX code: AVX-512 instead of AMX."""
    isa = chosen_isa() if asked is None else asked
    check_isa(isa)
    return "avx512" if isa == "amx" else isa


def check_isa(isa: str) -> None:
    """Raise ValueError for an instruction set that this machine does not support."""
    supported = _native.supported_isas()
    if isa not in supported:
        raise ValueError(f"this machine cannot run the instruction set {isa!r}; it can run {', '.join(supported)}")
