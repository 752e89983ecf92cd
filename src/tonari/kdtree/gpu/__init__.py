"""The k-d tree on CUDA: built, walked and answered on the card; only queries and results pass.

    run.py       the plan is carried out: prepare, search, probe; one or several devices, slabs of points
        │
    building.py  points -> DeviceTree: medians by sorting (segment, value) keys, a level at a time
    tree.py      the record
    search.py    queries in the order of their first leaves (_home_triton.py) -> neighbours (_search_triton.py)

_bounds_triton.py has what both kernels compare with; docs/kdtree.md has the figures and the proof.
"""
