"""Searches among rows of bits on the CPU."""
