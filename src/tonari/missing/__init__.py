"""Exact search among rows with missing values (NaN), by the metric "nan_euclidean".

    plan.py        a search on the CPU, and the reasons for refusing one
    products.py    an inner product of transformed rows whose sign tells whether a distance is within a limit
    tuning.py      sizes of blocks and samples
    reference.py   the plain definition: all distances, then a stable sort
    cpu/           the search, and exact values of pairs
    cuda/          refuses every search

The distance of two rows is sqrt(N d / C), where C is the number of columns that both rows have, and N the sum of the
squared differences in these columns. It is at most r exactly if N - t C is at most 0, with t = r^2 / d. Such a sum is
an inner product of rows with three numbers for each column, which brute force (``exact/``) compares. Two rows without a
common column have no distance: neither is a neighbour of the other.
"""
