"""Exact search among rows with missing values (NaN), by the metric "nan_euclidean".

    plan.py        the plan of a search on the CPU, and the reasons for refusing one
    memory.py      the bytes of a search
    tuning.py      sizes of blocks, and expected seconds
    reference.py   the plain definition: all distances, then a stable sort
    cpu/           the search, and exact distances of pairs
    cuda/          refuses every search

The distance of two rows is sqrt(N d / C), where C is the number of columns that both rows have, and N the sum of the
squared differences in these columns. The screen computes C, and N in float32 with a bound on its error
(native/missing/block.hpp); only pairs that may be among the nearest get their float64 distance. Two rows without a
common column have no distance: neither is a neighbour of the other.
"""
