"""Compare each query with its listed points by exact values: many small searches in one call.

>>> import numpy as np
>>> from tonari.core.listed import Listed
>>> line = np.array([[0.0], [1.0], [3.0]], np.float32)
>>> listed = Listed(np.array([1, 2]), np.array([0, 1]), np.array([2, 2]))
>>> search_listed(line[:2], line, 2, "euclidean", listed).indices
array([[ 1,  2],
       [ 2, -1]], dtype=int32)
"""

from __future__ import annotations

from tonari.core import _native
from tonari.core.listed import ListedSearch
from tonari.costs.model import listed_seconds

search_listed = ListedSearch(_native.search_listed, listed_seconds)
