"""Kernels that refine."""
