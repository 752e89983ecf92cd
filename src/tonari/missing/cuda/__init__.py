"""Searches among rows with missing values on CUDA, which are not supported."""
