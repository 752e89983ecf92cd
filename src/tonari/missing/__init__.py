"""Exact search among rows with missing values (NaN), by the metric "nan_euclidean".

    plan.py        the plan of a search on the CPU, and the reasons for refusing one
    products.py    transformed rows whose inner product shows whether a distance is within a limit
    tuning.py      sizes of blocks and samples
    reference.py   the plain definition: all distances, then a stable sort
    cpu/           the search, and exact distances of pairs
    cuda/          refuses every search

The distance of two rows is sqrt(N d / C), where C is the number of columns that both rows have, and N the sum of the
squared differences in these columns. It is at most r if and only if N - t C is at most 0, with t = r^2 / d. This sum is
an inner product of transformed rows with three numbers for each column, and brute force (``exact/``) finds the pairs
with a product of at least 0. Two rows without a common column have no distance: neither is a neighbour of the other.
"""
