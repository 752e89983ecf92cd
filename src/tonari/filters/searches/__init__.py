"""Answers to a call with rules.

asking.py     entry points of a call, with or without rules; with all points at the distance of the k-th
nearest.py    the k nearest allowed points, by listing (listed.py) or by dropping (dropping.py), whichever is faster
within.py     all allowed points within a radius, or the nearest of them
counting.py   the number of allowed points within a radius
"""
