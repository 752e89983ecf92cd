"""Attempts: the ways to search rows, and the order in which unproved rows are searched again.

ladder.py          the order, and the one place that makes attempts
attempt.py         the interface of an attempt, and the unproved rows
first.py           batches of all queries; contracted.py: of contracted rows; as_bytes.py: in int8
levels.py          more groups per row, then higher precisions, at last exact values of all points (compare.py)
nearby.py          only the points near some rows; without_copies.py: only the first copies of equal points
within.py          within a radius
in_batches.py      batches that fit into memory; rehearse.py: the launches of a search, compiled in advance
"""
