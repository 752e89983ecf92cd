"""The k-d tree on CUDA: built and searched entirely on the device; only queries and results are transferred.

    dispatch.py   executes the plan: prepare, search, probe; one or several devices, slabs of points
        │
    build.py      points -> DeviceTree: median splits by sorting (segment, value) keys, one level at a time
    tree.py       the data structure
    search.py     queries in the order of their first leaves (kernels/home.py) -> neighbours (kernels/search.py)

kernels/bounds.py has the bounds that both kernels use; docs/kdtree.md has the benchmarks and the proof of exactness.
"""
