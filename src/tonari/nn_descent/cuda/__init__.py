"""NN-Descent on CUDA: a start by clusters on matrix units, then rounds in which every point writes its own row alone.

backend.py         the steps
    │
form.py            rows in half precision, in which squared L2 stands for the metric
clusters.py        k-means on a sample; the clusters near each point
near_clusters.py   the centres near a row                                    kernels/near.py
scan.py            each point against the members of those clusters          kernels/scan.py
    │
reverse.py         who lists whom                                            kernels/reverse.py
rounds.py          neighbours of neighbours                                  kernels/candidates.py
                   their exact values, by exact/cuda/refine.py
                   and what is new in a row                                  kernels/mark.py

exact_neighbors.py the exact neighbours of a sample
"""
