"""Rows of bits on CUDA: refused."""
