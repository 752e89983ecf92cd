"""Minimum spanning trees by mutual reachability distance, which determine single linkage and HDBSCAN's clusters.

    tree.py        SpanningTree: its edges, and SciPy's matrix of single linkage
    clusters.py    HDBSCAN's clusters of a tree, by fast_hdbscan
    linkage.py     the matrix of single linkage, from the edges
    pool.py        the known edges between components, and the lightest known edge of each component
    by_tree.py     rounds over a k-d tree on the CPU, whose walks find the lightest edge of each component
    boruvka.py     rounds by searches: find the lightest edge of each component, search again where needed, merge
    apart.py       lower bounds of distances to other components, without a search
    reference.py   Prim's algorithm on all pairs

All data are in host memory, since a tree has only n - 1 edges. The caller passes a function that searches the points,
which may be on a device.
"""
