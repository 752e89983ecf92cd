"""Kernels that choose candidates, compute their exact values, and certify answers."""
