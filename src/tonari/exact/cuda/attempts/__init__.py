"""Attempts: the ways to search rows once, and the order in which rows that are not proved are searched again.

ladder.py          the order, and the one place that makes attempts
attempt.py         the interface of an attempt, and the rows that are left
first.py           batches of all queries; contracted.py: of contracted rows; as_bytes.py: in int8
levels.py          with more room and at higher precisions, at last by exact values of all points (compare.py)
nearby.py          among the points near to some rows; without_copies.py: among the first copies of points
within.py          within a radius
in_batches.py      batches that fit into memory; rehearse.py: what will be launched
"""
