"""Triton kernels for rows of bits."""
