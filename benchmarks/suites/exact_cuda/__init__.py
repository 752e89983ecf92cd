"""Exact search on CUDA: cases, cheapest first, proved row by row and timed beside torch, cuVS and flashlib."""

from .cases import SUITE

__all__ = ["SUITE"]
