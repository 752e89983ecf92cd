"""Screens: lower bounds of all points for a batch of queries, in low precision, and what they leave to refine.

screener.py        which screen a batch takes; sampling.py: the thresholds
all_minima.py      products; wide_rows.py: of long rows; elementwise.py: other metrics; contracted.py: contracted rows
mirrored.py        graphs, whose rows and points are compared once for both; mirror_notes.py
few.py             a few queries in two launches
group_lists.py     what is left: all minima, or the groups below a threshold
"""
