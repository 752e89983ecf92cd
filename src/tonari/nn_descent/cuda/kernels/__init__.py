"""Triton kernels of NN-Descent on CUDA, one per file."""
