"""Exact search on CUDA: answers are verified, then timed alternately with torch, cuVS and flashlib."""

from .cases import SUITE

__all__ = ["SUITE"]
