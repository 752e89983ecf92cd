"""Triton kernels of the papers' queues and of quick multi-select on CUDA."""
