"""Minimum spanning trees by mutual reachability distance, which determine single linkage and HDBSCAN's clusters.

    tree.py        SpanningTree: its edges, SciPy's matrix of single linkage, and clusters by fast_hdbscan
    by_tree.py     rounds over a k-d tree on the CPU, whose walks find the lightest edge of each component
    boruvka.py     rounds by searches: find the lightest edge of each component, search again where needed, merge
    apart.py       lower bounds of distances to other components, without a search
    reference.py   Prim's algorithm on all pairs

All data are in host memory, since a tree has only n - 1 edges. The caller passes a function that searches the points,
which may be on a device.
"""
