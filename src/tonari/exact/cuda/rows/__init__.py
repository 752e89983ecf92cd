"""Rows on a device: the form that the screen compares, its packed copies, and subsets of rows and columns.

form.py            centre and scale of rows; contraction.py: rows of fewer columns; form_dim.py: how many columns
pack.py            packs rows in float16, split, int8 or float32, with their errors; prepared.py keeps the copies
groups.py          groups, the points that share a lower bound; tiles.py: packed rows divided among programs
part.py            the position of a part in the whole search; bytes.py: detection of integers of one byte
codes.py           contracted rows in one byte per coordinate
copies.py          finds copies of rows that no answer can contain
"""
