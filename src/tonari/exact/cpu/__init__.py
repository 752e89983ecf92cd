"""Brute force on the CPU.

    prepared.py   points -> form (centred, scaled, or normalised) -> packed copy in a kernel's layout
    search.py     blocks of queries x slices of points -> screen -> select -> refine -> certified rows

The screen, the running thresholds and the refinement are native (native/exact/row_block.hpp).
"""
