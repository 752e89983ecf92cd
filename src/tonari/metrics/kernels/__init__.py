"""Triton functions for the terms of elementwise metrics, and for square roots and floors."""
