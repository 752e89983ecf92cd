"""Brute force on the CPU.

    prepared.py      points -> form (centred, scaled, or normalised) -> packed copy in a kernel's layout
    copies.py        the same without copies of rows that cannot be in any answer
    contraction.py   whether a form is contracted to few columns
    search.py        rows that one precision does not certify are searched at the next
    passes.py        blocks of queries x slices of points -> screen -> select -> refine -> certified rows
    join.py          the same if the points are the queries, using each product for both rows
    across.py        the same for rows on different sides of a boundary only
    method.py        the registered method

The screen, the running thresholds and the refinement are native code (native/exact/row_block.hpp).
"""
