"""Graphs of data larger than memory, built in a directory by tasks that read ranges of rows and write files.

a file, files, or an object with rows(begin, end)      source.py      read by ranges, identified by a digest
    │ transformed rows, if the metric requires them
    ▼
the route, the number of shards, the cost              planning/      plan.py: bytes of host, device and disk; seconds
    │ routes/              how slabs or shards are compared: exactly, or by NN-Descent
    ▼
stages of tasks                                        tasks.py       read (on CUDA, one task ahead), compute, write
    │  run here, or on workers of Dask                 workers/
    ▼
a directory                                            directory/     parts, finished tasks, rows of the graph
"""
