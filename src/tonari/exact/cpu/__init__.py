"""Brute force on the CPU.

    prepared.py      points -> form (centred, scaled, or normalised) -> packed copy in a kernel's layout
    copies.py        finds copies of rows that cannot be in any answer, and are not packed
    contraction.py   decides whether a form is contracted to few columns
    search.py        searches rows again, at the next precision, if one precision does not certify them
    passes.py        blocks of queries x slices of points -> screen -> select -> refine -> certified rows
    blocks.py        blocks of queries
    join.py          like passes.py if the queries are the points: uses each product for both rows
    across.py        like join.py, but only for rows on different sides of a boundary
    method.py        the registered method

The screen, the running thresholds and the refinement are native code (native/exact/row_block.hpp).
"""
