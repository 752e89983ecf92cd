"""Searches by given distances on the CPU: nearest.py and within.py."""
