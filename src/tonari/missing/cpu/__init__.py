"""Searches among rows with missing values on the CPU."""
