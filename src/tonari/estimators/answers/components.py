"""Connected components of a graph whose edges are added block by block, so that the graph need not fit in memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

Integers = npt.NDArray[np.integer[Any]]


class Components:
    """The connected components of n nodes under the edges that have been added so far.

    Attributes
    ----------
    of : int64 array of shape (n,)
        The component of each node, as an id from 0; ids are in ascending order of the components' first nodes.

    Examples
    --------
    >>> components = Components(5)
    >>> components.join(np.array([4, 3]), np.array([0, 2]))
    >>> components.of.tolist()
    [0, 1, 2, 2, 0]
    """

    def __init__(self, n: int) -> None:
        self.of: npt.NDArray[np.int64] = np.arange(n)
        self._count = n

    def join(self, left: Integers, right: Integers) -> None:
        """Add edges between nodes `left` and nodes `right`."""
        left, right = self.of[left], self.of[right]
        apart = left != right
        left, right = left[apart], right[apart]
        if not len(left):
            return
        edges = coo_array((np.ones(len(left), bool), (left, right)), shape=(self._count, self._count))
        self._count, merged = connected_components(edges, directed=False)
        _, first = np.unique(merged, return_index=True)
        places = np.empty(self._count, np.int64)
        places[np.argsort(first)] = np.arange(self._count)
        self.of = places[merged][self.of]
