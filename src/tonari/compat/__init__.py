"""Drop-in functions and classes with the names, arguments and results of other libraries, but tonari's exact search.

Each subpackage is imported by itself, for example ``from tonari.compat.scipy import KDTree``.

scipy/                     KDTree of scipy.spatial
faiss/                     knn, IndexFlat, IndexFlatL2, IndexFlatIP
pyg/                       knn, knn_graph, radius, radius_graph, nearest of torch_geometric.nn and torch_cluster
sentence_transformers/     semantic_search, paraphrase_mining_embeddings, community_detection
pytorch3d.py               knn_points, knn_gather
astropy/                   match_coordinates_sky, search_around_sky, match_one_to_one
arguments.py               checks of arguments that all of them use

A drop-in function translates its arguments, calls tonari's functions, and returns results in the form of the other
library. Each argument has the same meaning as in the other library, or is refused with an error that names it.
``docs/compat.md`` lists all arguments; the docstring of each module lists what it supports, what it refuses, and how
its answers differ from the original's.
"""
