"""Search among sparse rows: compressed rows of SciPy, on the CPU.

    rows.py        checked rows, and the ranks of their columns
    dense.py       dense rows in this layout
    plan.py        the plan of a search, and refusals
    memory.py      its bytes
    reference.py   the same answer from dense copies of the rows
    cpu/           searches for the nearest rows, and within a radius

The value of a pair of sparse rows has the same bits as the value of the same rows as dense arrays. The screen adds
products in float32 column by column (native/sparse/block.hpp), and the points that it cannot rule out get their value
in float64 (docs/exactness.md).
"""
