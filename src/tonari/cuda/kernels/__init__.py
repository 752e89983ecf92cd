"""Kernels that belong to no one method."""
