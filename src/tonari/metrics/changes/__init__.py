"""Metrics that equal another metric of transformed rows.

change.py         which metrics change rows, how, and how values are converted
row_changes.py    the changes: each checks rows, and returns other rows in float64
maps.py           linear maps, with the same bits on every machine
roots.py, trigonometry.py    functions of numbers, with the same bits on every machine
"""
