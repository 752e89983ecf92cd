"""Attempts: the ways to search rows, and the order in which they are tried on unproved rows.

A row is proved when a bound certifies that its answer is exact; unproved rows are searched again.

ladder.py          runs all attempts in their order
first.py           the first attempt at all queries; contracted.py: by contracted rows; as_bytes.py: in int8
level.py           the interface of a level, one step of retries
retries/           the attempts at unproved rows; a new way to retry rows is a module there
compare.py         computes the exact values of all points for a few rows
within.py          searches within a radius
in_batches.py      divides rows into batches that fit into memory
rehearse.py        compiles the kernels of a search in advance
"""
