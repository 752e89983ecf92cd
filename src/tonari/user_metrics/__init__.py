"""Exact search by the caller's own distances, passed as a function or as a matrix of all distances.

    values.py      the distances of a block of queries to a block of points, checked
    plan.py        the numbers of queries and points in a block, and its memory
    reference.py   the plain definition: all distances, then a stable sort
    cpu/           searches for the nearest points and within a radius, block by block

Nothing is known about such distances, so that bounds do not exist: every distance is computed, without a screen or a
certificate. For a graph with a function that the caller declares symmetric, only half of the distances are computed.
"""
