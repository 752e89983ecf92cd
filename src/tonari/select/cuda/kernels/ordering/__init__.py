"""Kernels that order neighbour lists."""
