"""The k-d tree: exact search that visits only leaves that may contain a neighbour; useful up to about 30 dimensions.

    plan.py        the plan of a search, on the CPU and on CUDA
    memory.py      computes the memory that a plan needs
    traversal.py   chooses the traversal: the walk, or the rounds of gieseke2014
    reference.py   build and visits in plain NumPy: the specification of the compiled kernels
    cpu/, cuda/    tree, build, search
    papers/        the rounds of gieseke2014

The design follows the buffer k-d tree of gieseke2014: a pointer-free top tree of median splits, over leaves that are
contiguous blocks of points. Queries that need the same leaf are answered together. The walk processes these queries one
after another, so that the leaf stays in the cache. The buffered traversal compares all of them with the leaf at once.
docs/kdtree.md has the benchmarks and the proof that no neighbour can be lost.
"""
