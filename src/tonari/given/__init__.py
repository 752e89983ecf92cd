"""Exact search by distances that the caller defines: by a function, or by a matrix of all distances.

    values.py      the distances of a block of queries to a block of points, checked
    plan.py        the number of queries and points of a block, and its memory
    reference.py   the plain definition: all distances, then a stable sort
    cpu/           the nearest points, and those within a radius, block by block

Such distances may have any values, so bounds do not exist: every distance is computed, without a screen or a
certificate. For a graph by a function that the caller declares symmetric, half of the distances are computed.
"""
