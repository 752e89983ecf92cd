"""Search among sparse rows, which are matrices of SciPy in CSR format, on the CPU.

    rows.py        checked rows, and the ranks of their columns
    dense.py       dense rows in this layout
    plan.py        the plan of a search, and the reasons for refusing one
    memory.py      the bytes of a search
    reference.py   the same answer from dense copies of the rows
    cpu/           searches for the nearest rows, and within a radius

The value of a pair of sparse rows has the same bits as the value of the same rows as dense arrays. The screen adds
float32 products column by column (native/sparse/block.hpp), and the candidates that it leaves are refined in float64
(docs/exactness.md).
"""
