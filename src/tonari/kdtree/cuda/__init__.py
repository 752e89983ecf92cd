"""The k-d tree on CUDA, which is built and searched entirely on the device.

    dispatch.py   executes the plan: search, probe; one or several devices, slabs of points
        │
    blocks.py     answers queries of one device block by block, while other blocks are copied from and to host memory
    prepared.py   points and their trees, kept between searches
    kept.py       the trees of slabs, kept in host memory
    build.py      points -> DeviceTree: median splits by sorting (segment, value) keys, one level at a time
    tree.py       the data structure
    steps.py      chooses the number of queries per launch
    search.py     the walk: queries in the order of first leaves (kernels/home.py) -> neighbours (kernels/search.py)

papers/cuda/ has the buffered traversal. kernels/bounds.py has the lower bounds of all kernels, kernels/nearest.py their
lists; docs/kdtree.md has the benchmarks and the proof of exactness.
"""
