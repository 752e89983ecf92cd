"""Retries: the ways to search again the rows not yet certified as exact.

attempt.py          the interface of a retry, and the unproved rows
levels.py           more groups per row, higher precisions, and exact values of all points
nearby.py           searches a few rows at once, only among the points near them
without_copies.py   without duplicate points, of which only the first copies are searched
"""
