"""Searches that compute all exact values, without packed points or a screen.

nearest.py   the k nearest points, for small searches and few queries
within.py    the points within a radius
listed.py    the k nearest of the points that are listed for each query
"""
