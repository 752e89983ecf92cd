"""Kernels that compute lower bounds for pairs of a query and a point, and list candidates."""
