"""Rows with missing values on the CPU."""
