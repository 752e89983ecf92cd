"""Attempts: the ways to search rows, and the order in which they are tried on unproved rows.

A row is proved when a bound certifies that its answer is exact; unproved rows are searched again.

ladder.py          runs all attempts in their order
attempt.py         the interface of an attempt, and the unproved rows
first.py           the first attempt at all queries; contracted.py: by contracted rows; as_bytes.py: in int8
level.py           the interface of a level, one step of retries
levels.py          retries with more groups per row, higher precisions, and exact values of all points (compare.py)
nearby.py          searches only points near some rows; without_copies.py searches only the first of equal points
within.py          searches within a radius
in_batches.py      divides rows into batches that fit into memory
rehearse.py        compiles the kernels of a search in advance
"""
