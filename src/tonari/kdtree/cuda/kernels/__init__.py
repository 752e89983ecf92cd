"""Triton kernels of the k-d tree on CUDA."""
