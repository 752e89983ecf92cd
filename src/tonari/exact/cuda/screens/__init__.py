"""Screens: low-precision lower bounds for all pairs of a query and a point, which leave few candidates.

screener.py        chooses the screen for a batch; sampling.py: thresholds from a sample
all_minima.py      by matrix products; wide_rows.py: the same for long rows
contracted.py      for contracted rows; coded.py: for codes, by products of int8
elementwise.py     for metrics whose terms are not products
mirrored.py        for graphs: computes the score of each pair once, for both of its rows
few.py             for a few queries, in two launches
widths.py          chooses the number of groups to refine per row
"""
