"""Triton kernels of brute force on CUDA, one per file."""
