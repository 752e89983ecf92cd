"""Searches among sparse rows on the CPU."""
