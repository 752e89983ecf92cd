"""Rates of a search on a GPU, compared with the ceilings of the device."""

from __future__ import annotations

from typing import Any

from ...harness.case import Case
from ...harness.device import Timing
from ...harness.run import Run


def speed(run: Run, case: Case, timing: Timing) -> dict[str, Any]:
    """Return extras: operations per second for all pairs of queries and points, and fractions of the ceilings."""
    pairs = case.m * case.n / timing.median
    flops = 2 * case.d * pairs
    gemm = run.ceilings.gemm()
    return {
        "pairs_per_s": pairs,
        "tflops": flops / 1e12,
        "gemm_tflops": gemm / 1e12,
        "fraction_gemm": flops / gemm,
        "copy_gbps": run.ceilings.copy() / 1e9,
    }
