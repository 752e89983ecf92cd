"""Searches by the caller's own distances on the CPU: nearest.py and within.py."""
