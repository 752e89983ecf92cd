"""Triton kernels of k-selection on CUDA, one in a file."""
