"""Metrics that are computed as another metric of transformed rows.

change.py         the transformation of rows and the conversion of values for each of these metrics
row_changes.py    the transformations: each checks rows, and returns transformed rows in float64
maps.py           linear maps of rows, with the same bits on every machine
roots.py, trigonometry.py    roots and trigonometric functions, with the same bits on every machine
"""
