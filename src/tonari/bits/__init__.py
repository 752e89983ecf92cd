"""Search among rows of bits, by counting the bits in which they differ or which they share.

    plan.py        the plan of a search, and the memory that it needs
    cpu/, cuda/    packing and search; CUDA refuses

Every distance is a whole number, or a quotient of two, and all are compared exactly: there is nothing to screen, refine
or certify. The reference are the definitions in ``tonari.metrics.definitions``, as for all metrics.
"""
