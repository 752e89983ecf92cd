"""Triton kernels of the buffered traversal."""
