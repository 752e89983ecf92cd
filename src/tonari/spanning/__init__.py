"""Minimum spanning trees by mutual reachability: what single linkage and HDBSCAN are made from.

    tree.py        SpanningTree: its edges, and SciPy's matrix of single linkage
    linkage.py     that matrix, from the edges
    pool.py        edges between components that are known, and the lightest of each component
    boruvka.py     the rounds: which components know their lightest edge, which points ask again, who merges
    apart.py       bounds of distances to other components, without a search
    reference.py   Prim's algorithm on all pairs

All of it is in host memory: a tree has n - 1 edges, and what is searched is searched by the caller's function.
"""
