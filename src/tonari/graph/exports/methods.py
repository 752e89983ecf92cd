"""The export methods of KNNGraph; each one is defined in the module that is named after the target library."""

from __future__ import annotations

from tonari.graph.exports import arrow, csr, edge_index, hdbscan, igraph, networkx, scanpy, sklearn, weights
from tonari.graph.exports.embeddings import opentsne, umap


class Exports:
    """The methods that export a graph in the form that each library expects."""

    to_csr = csr.to_csr
    to_weights = weights.to_weights
    to_edge_index = edge_index.to_edge_index
    to_igraph = igraph.to_igraph
    to_networkx = networkx.to_networkx
    to_arrow = arrow.to_arrow

    to_umap = umap.to_umap
    to_opentsne = opentsne.to_opentsne
    to_sklearn = sklearn.to_sklearn
    to_scanpy = scanpy.to_scanpy

    core_distances = hdbscan.core_distances
    mutual_reachability = hdbscan.mutual_reachability
    to_hdbscan = hdbscan.to_hdbscan
    to_fast_hdbscan = hdbscan.to_fast_hdbscan
