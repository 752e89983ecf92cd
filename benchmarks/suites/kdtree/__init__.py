"""The k-d tree on the CPU and on CUDA, beside brute force, auto, pykdtree and SciPy's cKDTree."""

from .cases import SUITE

__all__ = ["SUITE"]
