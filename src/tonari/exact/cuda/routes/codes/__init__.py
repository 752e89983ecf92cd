"""The route for points in host memory with codes on the device: contracted rows of one byte per coordinate.

    look       screens/coded.py             -> points whose codes are near
    refine     the rows of these points, read from host memory by the device     -> the k-th value
    within     screens/coded.py             -> all points that may be as near, and a mark for complete lists
    refine     their rows, in the same way  -> the k best

A code of 61 coordinates takes 64 bytes, a code of 123 coordinates 128 bytes, and a query reads few rows. The points may
therefore be several times as large as the memory of the device. Unproved rows, whose lists were too short, are searched
again with longer lists. The remaining rows are searched in all dimensions (host_search.py).

    points.py     the points: rows in host memory, codes on the device
    steps.py      the steps of a batch of queries on the device
    replays.py    batches that are replayed as CUDA graphs
    search.py     the searches, and the compilation of their kernels in advance
"""
