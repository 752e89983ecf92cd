"""The k-d tree: exact search that looks only at leaves which may hold a neighbour; for d up to about 30.

    tree.py        the record: points in leaf order, a tight box round every leaf and every node
    building.py    points -> Tree on the CPU: exact medians on every level, in parallel
    search.py      queries in the order of their first leaves -> neighbours, leaves visited nearest first
    prepared.py    points with their tree, as the engines and the planner hold them
    reference.py   the build and the visits in plain NumPy: what the compiled kernels must reproduce
    gpu/           the same tree and the same answers on CUDA

The idea is the buffer k-d tree of gieseke2014: a top tree of median splits without pointers over leaves that are
contiguous blocks, and queries that wait for the same leaf answered together. docs/kdtree.md has the figures and the
proof that no neighbour can be lost.
"""
