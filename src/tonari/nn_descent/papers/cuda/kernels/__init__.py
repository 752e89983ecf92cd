"""Triton kernels of the rounds of wang2021."""
