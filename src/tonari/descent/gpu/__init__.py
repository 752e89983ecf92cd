"""NN-Descent on CUDA: a start by clusters on matrix units, then rounds in which every point writes its own row alone.

steps.py        what ``descent/run.py`` asks for
    │
form.py         rows in half precision, in which squared L2 stands for the metric
clusters.py     k-means on a sample; the clusters near each point
near.py         the centres near a row                                    _near_triton.py
scan.py         each point against the members of those clusters          _scan_triton.py
    │
reverse.py      who lists whom                                             _reverse_triton.py
rounds.py       neighbours of neighbours                                   _candidates_triton.py
                their exact values, by exact/gpu/refine.py
                and what is new in a row                                   _mark_triton.py

nearest.py      the exact engine, for the neighbours of a sample
"""
