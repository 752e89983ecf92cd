"""Triton kernels of the papers' queues and quick multi-select on CUDA, one in a file."""
