"""Triton functions of the elementwise metrics."""
