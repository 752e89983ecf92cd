"""Brute force on the CPU.

    method.py        the registered method: small searches are direct, all others use prepared rows
    direct/          searches that compute all exact values, without packed points or a screen
    rows/            points -> form -> packed copy in a kernel's layout; copies, clusters, columns and codes
    search.py        the precision of each row: rows that cannot be certified are retried at the next one
    radius.py        the same for searches within a radius
    passes.py        blocks of queries x slices of points -> screen -> select -> refine -> certified rows
    blocks.py        blocks of queries
    join.py          like passes.py if the queries are the points: uses each product for both rows
    across.py        like join.py, but only for rows on different sides of a boundary
    farthest.py      the farthest points, by a search by inner product

The screen, the running thresholds and the refinement are native code (native/exact/row_block.hpp).
"""
