"""Exact search by distances that the caller gives: a function, or a matrix of all distances.

    values.py      the distances of a block of queries to a block of points, checked
    plan.py        the number of queries and points of a block, and its memory
    reference.py   the plain definition: all distances, then a stable sort
    cpu/           the nearest points, and those within a radius, block by block

Nothing is known about such distances, so nothing can be bounded: every distance is computed, without a screen or a
certificate. A graph by a function that the caller calls symmetric computes half of them.
"""
