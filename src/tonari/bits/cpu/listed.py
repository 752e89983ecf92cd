"""Searches in lists of points, one for each query, for rows of bits: many small searches in one call.

>>> import numpy as np
>>> from tonari.core.rows.listed import Listed
>>> rows = np.array([[0], [1], [3]], np.uint8)
>>> listed = Listed(np.array([1, 2]), np.array([0, 1]), np.array([2, 2]))
>>> search_listed(rows[:2], rows, 2, "hamming", listed).indices
array([[ 1,  2],
       [ 2, -1]], dtype=int32)
"""

from __future__ import annotations

from tonari.core import _native
from tonari.core.rows.listed import ListedSearch
from tonari.costs.model import listed_bits_seconds

search_listed = ListedSearch(_native.search_listed_bits, listed_bits_seconds)
