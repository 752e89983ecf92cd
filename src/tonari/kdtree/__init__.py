"""The k-d tree: exact search that looks only at leaves which may hold a neighbour; for d up to about 30.

    plan.py        every choice, on the CPU and on CUDA
    memory.py      what that holds in memory
    reference.py   the build and the visits in plain NumPy: what the compiled kernels must reproduce
    cpu/, cuda/    tree, build, search

The idea is the buffer k-d tree of gieseke2014: a top tree of median splits without pointers over leaves that are
contiguous blocks, and queries that wait for the same leaf answered together. docs/kdtree.md has the figures and the
proof that no neighbour can be lost.
"""
