"""Add each point to its own neighbour list, or remove it from there, on the device.

Column 0 of a k-NN graph with ``include_self`` has the value of each point with itself, which equals that of the
reference bit by bit:

    lane j  =  0.0 + x[j] x[j] + x[j + 16] x[j + 16] + ...      products rounded before they are added
    sum     =  lanes folded in halves: 8 + 8, 4 + 4, 2 + 2, 1 + 1

Only the inner product needs this sum. Every other metric has a fixed `self_value`, because the distance of a point to
itself is 0. torch adds and multiplies elementwise in separate kernels, so nothing is fused. The sums take n d
operations, the graph itself n² d.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch.nn import functional as nn

from tonari.core.results.neighbors import Neighbors
from tonari.cuda import tuning
from tonari.metrics import get_metric
from tonari.metrics.definitions import LANES


def with_self(found: Neighbors, points: Any, metric: str) -> Neighbors:
    """Insert each point as the first of its own neighbours into the lists of a self-join.

    Parameters
    ----------
    found : Neighbors of tensors of shape (n, k)
    points : tensor of shape (n, d), on the same device

    Returns
    -------
    Neighbors of tensors of shape (n, k + 1)
    """
    distances, indices = found
    value = get_metric(metric).self_value
    first = torch.full((len(points),), value or 0.0, dtype=distances.dtype, device=distances.device)
    if value is None:
        for begin in range(0, len(points), tuning.OWN_VALUES_ROWS):
            here = slice(begin, begin + tuning.OWN_VALUES_ROWS)
            first[here] = _squared_norms(points[here])  # the only rounding to the dtype of the values
    ids = torch.arange(len(points), dtype=indices.dtype, device=indices.device)
    return Neighbors(torch.cat([first[:, None], distances], 1), torch.cat([ids[:, None], indices], 1))


def without_own(found: Neighbors, own: Any, k: int) -> Neighbors:
    """Remove each query's own point from its list; from a list without this point, remove the last entry.

    Parameters
    ----------
    found : Neighbors of shape (m, k + 1), or (m, k) if the lists contain all points
        Arrays or tensors.
    own : int64 array or tensor of shape (m,)
        For each query, the row number of its own point.

    Returns
    -------
    Neighbors of shape (m, k)
        Arrays if `found` has arrays, else tensors.
    """
    distances, indices = (torch.as_tensor(part) for part in found)
    if indices.shape[1] == k:  # the lists contain all points: pad them, since each will lose an entry
        distances, indices = nn.pad(distances, (0, 1), value=float("inf")), nn.pad(indices, (0, 1), value=-1)
    numbers = torch.as_tensor(own).to(indices.device)[:, None]
    other = indices != numbers
    other[:, -1] &= ~other.all(1)
    lists = (part[other].view(len(indices), -1)[:, :k].contiguous() for part in (distances, indices))
    return Neighbors(*(part.numpy() if isinstance(found.indices, np.ndarray) else part for part in lists))


def _squared_norms(rows: Any) -> Any:
    lanes = torch.zeros((len(rows), LANES), dtype=torch.float64, device=rows.device)
    for begin in range(0, rows.shape[1], LANES):
        part = rows[:, begin : begin + LANES].double()
        lanes[:, : part.shape[1]] += part * part
    while lanes.shape[1] > 1:
        half = lanes.shape[1] // 2
        lanes = lanes[:, :half] + lanes[:, half:]
    return lanes[:, 0]
