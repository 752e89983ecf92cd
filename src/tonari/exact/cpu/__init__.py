"""Brute force on the CPU.

    prepared.py      points -> form (centred, scaled, or normalised) -> packed copy in a kernel's layout
    copies.py        ... without copies of rows that no answer can hold
    contraction.py   whether a form is contracted to few columns
    search.py        blocks of queries x slices of points -> screen -> select -> refine -> certified rows
    join.py          the same where the points are the queries, and a product serves both of its rows
    across.py        ... and only rows on different sides of a boundary meet
    method.py        the registered method

The screen, the running thresholds and the refinement are native code (native/exact/row_block.hpp).
"""
