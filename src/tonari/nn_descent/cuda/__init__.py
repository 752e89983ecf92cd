"""NN-Descent on CUDA: a start by clusters on tensor cores, then rounds in which every point updates only its own row.

backend.py         the steps
    │
form.py            rows in half precision, whose squared L2 distances approximate the order by the metric
clusters.py        k-means on a sample; the clusters near each point
near_clusters.py   the centres nearest to a row                              kernels/near.py
scan.py            comparison of each point with the members of near clusters  kernels/scan.py
    │
reverse.py         reverse lists                                             kernels/reverse.py
rounds.py          neighbours of neighbours                                  kernels/candidates.py
                   their exact values, by exact/cuda/refine/groups.py
                   the new lists, and their changes                          kernels/mark.py
random_entries.py  the random start
exact_neighbors.py the exact neighbours of a sample
"""
