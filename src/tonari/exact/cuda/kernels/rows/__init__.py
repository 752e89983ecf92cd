"""Kernels of packed rows."""
