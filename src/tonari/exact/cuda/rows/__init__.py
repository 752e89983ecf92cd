"""Rows on a device: the form that the screen compares, packed copies of it, and fewer rows or columns.

form.py            centre and scale; contraction.py and form_dim.py: fewer columns, and how many
pack.py            rows in float16, split, int8 or float32, and their errors; prepared.py keeps them
groups.py          points that share a lower bound; tiles.py: how packed rows are held by a program
part.py            where some of the points and queries are among all; bytes.py: which rows are integers of one byte
copies.py          copies of rows that no answer can hold, and points without them
"""
