"""Triton kernels of k-selection on CUDA."""
