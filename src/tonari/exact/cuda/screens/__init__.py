"""Screens: low-precision lower bounds for all pairs of a batch of queries and the points, which leave few candidates.

screener.py        the choice of a screen for a batch; sampling.py: thresholds from a sample
all_minima.py      matrix products; wide_rows.py: long rows; contracted.py: contracted rows
elementwise.py     metrics whose terms are not products
mirrored.py        graphs: each pair is compared once, for both of its rows
few.py             a few queries in two launches
widths.py          the number of groups to refine
"""
