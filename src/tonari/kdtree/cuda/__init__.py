"""The k-d tree on CUDA, which is built and searched entirely on the device.

    dispatch.py   executes the plan of a search on one or several devices, slab by slab; estimates visits from a sample
        │
    blocks.py     answers queries of one device block by block, while other blocks are copied from and to host memory
    prepared.py   points and their trees, kept between searches, on devices or slab by slab in host memory
    build.py      points -> DeviceTree: median splits by sorting (segment, value) keys, level by level
    tree.py       the data structure
    steps.py      chooses the number of queries per launch
    search.py     the walk: queries, ordered by their first leaves (kernels/home.py) -> neighbours (kernels/search.py)
    within.py     the same for radius searches; within_dispatch.py executes their plans

papers/cuda/ has the buffered traversal. All kernels share the lower bounds of kernels/bounds.py and the neighbour lists
of kernels/nearest.py. docs/kdtree.md has the benchmarks and the proof of exactness.
"""
