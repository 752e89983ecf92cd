"""Triton kernels of NN-Descent on CUDA, one in a file."""
