"""Retries: the ways to search again the rows that no bound has proved yet.

attempt.py          the interface of a retry, and the unproved rows
levels.py           more groups per row, higher precisions, and exact values of all points
nearby.py           only the points near some of the rows
without_copies.py   only the first of equal points
"""
