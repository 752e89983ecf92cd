"""Rows on a device: the form that the screen compares, its packed copies, and subsets of rows and columns.

form.py            centre and scale; contraction.py: fewer columns; form_dim.py: the number of these columns
pack.py            rows in float16, split, int8 or float32, with their errors; prepared.py keeps them
groups.py          points that share a lower bound; tiles.py: the division of packed rows among programs
part.py            positions of a part of a search in the whole; bytes.py: detection of integers of one byte
copies.py          copies of rows that no answer can contain
"""
