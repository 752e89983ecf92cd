"""Graphs of more points than fit in memory, built by tasks that read ranges of rows and write files.

a file, files, or an object with rows(begin, end)      source.py      read by ranges, identified by a digest
    │
    ▼
the route, the number of shards, the cost              planning/      plan.py: bytes of host, device and disk; seconds
    │ routes/              how slabs or shards are compared: exactly, or by NN-Descent
    ▼
stages of tasks                                        tasks.py       read, compute, write; on CUDA one ahead
    │  run here, or on workers of Dask                 workers/
    ▼
a directory                                            directory/     parts, finished tasks, the rows of the graph
"""
