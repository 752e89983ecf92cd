"""Rows with missing values on CUDA: refused."""
