"""Search among rows of bits, by counting the bits in which they differ or which they share.

    plan.py          the plan of a search on the CPU, its memory, and refusals
    cpu/             packing, search, radii, listed pairs
    cuda/            its own plan; values of all pairs by products of bits, and selection from them
    cuda/kernels/    unpacking, products, listed pairs

Every distance is a whole number, or a quotient of two, and all are compared exactly: there is nothing to screen, refine
or certify. The reference are the definitions in ``tonari.metrics.definitions``, as for all metrics.
"""
