"""Benchmarks of tonari: data sets, peers, machine ceilings, and one entry point, ``python -m benchmarks``."""
