"""Attempts: the ways to search rows, and the order in which they are tried on unproved rows.

A row is proved when a bound certifies that its answer is exact; unproved rows are searched again.

ladder.py          runs all attempts in their order
first.py           searches batches of all queries; contracted.py compares contracted rows, as_bytes.py int8 rows
retries/           search unproved rows again: a new way to do so is a module there
level.py           the record of a retry with more groups or a higher precision
compare.py         compares a few rows with all points by exact values
within.py          searches within a radius
in_batches.py      divides rows into batches that fit into memory
rehearse.py        compiles the kernels of a search in advance
"""
