"""Approximate graphs (NN-Descent, merging) beside the exact engine, auto, pynndescent and cuVS."""

from .cases import SUITE

__all__ = ["SUITE"]
