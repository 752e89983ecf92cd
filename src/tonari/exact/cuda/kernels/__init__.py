"""Triton kernels of brute force on CUDA, one in a file."""
