"""Exports to libraries that embed points in the plane.

umap.py       UMAP's precomputed_knn; umap_index.py is the object that finds neighbours of new points
opentsne.py   openTSNE's knn_index; opentsne_index.py also searches for new points
searcher.py   the interface of :class:`tonari.Index` that both modules use
"""
