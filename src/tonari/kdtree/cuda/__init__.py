"""The k-d tree on CUDA: built, walked and answered on the card; only queries and results pass.

    dispatch.py   the plan is carried out: prepare, search, probe; one or several devices, slabs of points
        │
    build.py      points -> DeviceTree: medians by sorting (segment, value) keys, a level at a time
    tree.py       the record
    search.py     queries in the order of their first leaves (kernels/home.py) -> neighbours (kernels/search.py)

kernels/bounds.py has what both kernels compare with; docs/kdtree.md has the figures and the proof.
"""
