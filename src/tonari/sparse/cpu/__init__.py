"""Sparse rows on the CPU."""
