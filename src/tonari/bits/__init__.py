"""Search among rows of bits, by the number of bits that differ between two rows, or by the share of common bits.

    plan.py          the plan of a search on the CPU, its memory, and the reasons for refusing one
    cpu/             packs rows; searches for the nearest rows, within a radius, and in lists of points
    cuda/            has its own plan; computes the values of all pairs by products of bits, and selects from them
    cuda/kernels/    kernels that unpack rows, multiply them, and compare listed pairs

Every distance is a whole number or a quotient of two whole numbers. Distances are therefore compared exactly, without a
low-precision screen, refinement or certificate. The definitions in ``tonari.metrics.definitions`` are the reference, as
for all metrics.
"""
