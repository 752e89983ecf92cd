"""The k-d tree on the CPU and on CUDA, compared with brute force, auto, pykdtree and SciPy's cKDTree."""

from .cases import SUITE

__all__ = ["SUITE"]
