"""Search among rows of bits, by counting differing and common bits.

    plan.py          the plan of a search on the CPU, its memory, and refusals
    cpu/             packing, search, radii, listed pairs
    cuda/            its own plan; values of all pairs by products of bits, and selection from them
    cuda/kernels/    unpacking, products, listed pairs

Every distance is a whole number or a quotient of two whole numbers, and distances are compared exactly, without a
screen, refinement or certificate. The definitions in ``tonari.metrics.definitions`` are the reference, as for all
metrics.
"""
