"""Lookalikes: other libraries' names, arguments and results, with tonari's neighbours. Each is imported by itself.

scipy/                     KDTree of scipy.spatial
faiss/                     knn, IndexFlat, IndexFlatL2, IndexFlatIP
pyg.py                     knn, knn_graph, radius, radius_graph, nearest of torch_geometric.nn and torch_cluster
sentence_transformers/     semantic_search, paraphrase_mining_embeddings, community_detection
pytorch3d.py               knn_points, knn_gather
arguments.py               what they have in common

A lookalike translates arguments, calls tonari's verbs, and returns what the other library would. It takes an argument
in the other library's sense or refuses it by name. ``docs/compat.md`` has all arguments; the docstring of each module
says what it covers, what it refuses and what differs.
"""
