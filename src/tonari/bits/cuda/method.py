"""Rows of bits on CUDA as a registered method: it refuses every problem, and names the CPU."""

from __future__ import annotations

from tonari.bits.cpu.method import BitsOnCpu


class BitsOnCuda(BitsOnCpu):
    """See :func:`tonari.bits.plan.refusal`, which refuses every device."""

    device = "cuda"
