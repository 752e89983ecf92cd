"""Exact search on CUDA: cases, fastest first, proved row by row and timed in turns with torch, cuVS and flashlib."""

from .cases import SUITE

__all__ = ["SUITE"]
