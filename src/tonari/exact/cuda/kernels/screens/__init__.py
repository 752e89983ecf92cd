"""Kernels of the screens."""
