"""Triton functions of the elementwise metrics, and of square roots and floors."""
