"""Rows of bits on the CPU."""
