"""The k-d tree: exact search that visits only the leaves that may contain a neighbour, for up to about 30 dimensions.

    plan.py        the plan of a search, on the CPU and on CUDA
    memory.py      computes the memory that a plan needs
    traversal.py   chooses the traversal: single walks, or the buffered rounds of gieseke2014
    reference.py   build and visits in plain NumPy: the specification of the compiled kernels
    cpu/, cuda/    tree, build, search
    papers/        the buffered traversal of gieseke2014

The design follows the buffer k-d tree of gieseke2014: a pointer-free top tree of median splits, over leaves that are
contiguous blocks of points. Queries that need the same leaf are answered together. The walk finishes these queries one
after another, while the leaf stays in the cache. The buffered traversal collects the queries of a leaf in a buffer, and
compares all of them with the leaf at once. docs/kdtree.md has the benchmarks and the proof that no neighbour can be
lost.
"""
