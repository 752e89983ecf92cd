"""Graphs of more points than fit in memory: tasks on ranges of rows, each of which writes files.

a file, files, or an object with rows(begin, end)      source.py      read by ranges, identified by a digest
    │
    ▼
which route, how many shards, what it takes            planning/      plan.py: bytes of host, device and disk; seconds
    │ ├── exact_route.py     every slab of rows is compared with every other
    ├── pair_rounds.py     every two slabs are compared once, and each row keeps its nearest points so far:
    │       exact_pairs_route.py   exactly, on the CPU: a product gives the scores of both rows
    │       merge_route.py         by merging the graphs of the two (GGM, wang2021)
    └── cluster_route.py   shards of near rows that overlap (dealing.py); the lists of a row are joined
    ▼
stages of tasks                                        tasks.py       read, compute, write; on CUDA one ahead
    │  run here, or on workers of Dask                 local.py, on_dask.py
    ▼
a directory                                            workspace.py   parts, finished tasks, the rows of the graph
"""
