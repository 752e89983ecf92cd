"""The k-d tree on CUDA, built and searched entirely on the device; only queries and results are transferred.

    dispatch.py   executes the plan: search, probe; one or several devices, slabs of points
        │
    blocks.py     queries of one device, block by block, with copies from and to host memory at the same time
    prepared.py   points and their trees, kept between searches
    kept.py       the trees of slabs, kept in host memory
    build.py      points -> DeviceTree: median splits by sorting (segment, value) keys, one level at a time
    tree.py       the data structure
    steps.py      the number of queries per launch
    search.py     the walk: queries in the order of first leaves (kernels/home.py) -> neighbours (kernels/search.py)

papers/cuda/ has the buffered traversal. kernels/bounds.py has the lower bounds of all kernels, kernels/nearest.py their
lists; docs/kdtree.md has the benchmarks and the proof of exactness.
"""
