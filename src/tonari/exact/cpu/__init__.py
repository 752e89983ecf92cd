"""Brute force on the CPU.

    prepared.py   points -> form (centred, scaled, or normalised) -> packed copy in a kernel's layout
    search.py     blocks of queries x slices of points -> screen -> select -> refine -> certified rows
    method.py     the registered method

The screen, the running thresholds and the refinement are native code (native/exact/row_block.hpp).
"""
