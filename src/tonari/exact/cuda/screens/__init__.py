"""Screens: lower bounds of all points for a batch of queries, in low precision; they leave few points to refine.

screener.py        which screen a batch takes; sampling.py: the thresholds
all_minima.py      products; wide_rows.py: of long rows; elementwise.py: other metrics; contracted.py: contracted rows
mirrored.py        graphs, whose rows and points are compared once for both
few.py             a few queries in two launches
widths.py          how many groups are refined of what is left
"""
