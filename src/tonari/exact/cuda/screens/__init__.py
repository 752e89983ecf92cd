"""Screens: low-precision lower bounds of all points for a batch of queries, which leave few candidates to refine.

screener.py        which screen a batch takes; sampling.py: the thresholds
all_minima.py      matrix products; wide_rows.py: long rows; elementwise.py: other metrics; contracted.py: contracted
rows mirrored.py        graphs: each pair is compared once, for both of its rows
few.py             a few queries in two launches
widths.py          the number of groups to refine
"""
