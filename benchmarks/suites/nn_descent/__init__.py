"""Approximate graphs, by NN-Descent and by merging, compared with exact graphs, auto, pynndescent and cuVS."""

from .cases import SUITE

__all__ = ["SUITE"]
