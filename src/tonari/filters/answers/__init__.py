"""Answers to a call with rules.

asking.py     answers to a call, with or without rules
nearest.py    the k nearest allowed points, by listing (listed.py) or by dropping (dropping.py), whichever is faster
within.py     all points within a radius, or the nearest of them
ties.py       the k nearest points, and all others at the distance of the k-th
counting.py   the number of points within a radius
"""
