"""NN-Descent on CUDA: a start by clusters on tensor cores, then rounds in which every point updates only its own row.

backend.py         the steps; the random start; the exact neighbours of a sample
    │
form.py            rows in half precision, whose squared L2 distances approximate the order by the metric
clusters.py        k-means on a sample; the clusters near each point         kernels/near.py
scan.py            comparison of each point with the members of near clusters  kernels/scan.py
    │
rounds.py          reverse lists                                             kernels/reverse.py
                   neighbours of neighbours                                  kernels/candidates.py
                   their exact values, by exact/cuda/refine/groups.py
                   the new lists, and their changes                          kernels/mark.py
"""
