"""Attempts: the ways to search rows once, and the order in which rows that are not proved are searched again.

ladder.py          the order
first.py           batches of all queries; contracted.py: of contracted rows; as_bytes.py: in int8
nearby.py          among the points near to some rows; without_copies.py: among the first copies of points
compare.py         by exact values of all points
within.py          within a radius
in_batches.py      batches that fit into memory; rehearse.py: what will be launched
"""
