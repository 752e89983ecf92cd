"""NN-Descent on CUDA: a start by clusters on tensor cores, then rounds in which every point writes only its own row.

backend.py         the steps
    │
form.py            rows in half precision, whose squared L2 distances stand in for the metric
clusters.py        k-means on a sample; the clusters near each point
near_clusters.py   the centres nearest to a row                              kernels/near.py
scan.py            each point against the members of those clusters          kernels/scan.py
    │
reverse.py         reverse lists                                             kernels/reverse.py
rounds.py          neighbours of neighbours                                  kernels/candidates.py
                   their exact values, by exact/cuda/refine.py
                   the new lists, and what changed in them                   kernels/mark.py

The update "gnnd", in which a point writes to the lists of others:

gnnd_backend.py    the steps, but for its round those of backend.py
gnnd.py            lists with distances                                      kernels/lists.py
                   own samples, reverse samples, both joined                 kernels/sample.py, append.py, join.py
                   samples against each other, proposals                     kernels/cross.py
                   insertion behind spinlocks                                kernels/insert.py
random_entries.py  the random start
exact_neighbors.py the exact neighbours of a sample
"""
