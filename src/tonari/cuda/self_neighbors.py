"""Column 0 of a graph that includes self, on the device: each point's value with itself, in the bits of the reference.

    lane j  =  0.0 + x[j] x[j] + x[j + 16] x[j + 16] + ...      products rounded before they are added
    sum     =  lanes folded in halves: 8 + 8, 4 + 4, 2 + 2, 1 + 1

Only a metric without a `self_value` needs it, the inner product; every distance to oneself is 0. torch adds and
multiplies elementwise in separate kernels, so nothing is fused. This costs n d operations beside n² d of the graph.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch.nn import functional as nn

from tonari.core.neighbors import Neighbors
from tonari.metrics import get_metric
from tonari.metrics.definitions import LANES

_BLOCK = 1 << 20  # rows at once: 16 lanes of float64 and one product of them are 256 MB


def with_self(found: Neighbors, points: Any, metric: str) -> Neighbors:
    """Neighbours of a self-join with each point itself put first.

    Parameters
    ----------
    found : Neighbors of tensors of shape (n, k)
    points : tensor of shape (n, d), on the same device
    metric : str

    Returns
    -------
    Neighbors of tensors of shape (n, k + 1)
    """
    distances, indices = found
    value = get_metric(metric).self_value
    first = torch.full((len(points),), value or 0.0, dtype=distances.dtype, device=distances.device)
    if value is None:
        for begin in range(0, len(points), _BLOCK):
            here = slice(begin, begin + _BLOCK)
            first[here] = _squared_norms(points[here])  # rounds once
    ids = torch.arange(len(points), dtype=indices.dtype, device=indices.device)
    return Neighbors(torch.cat([first[:, None], distances], 1), torch.cat([ids[:, None], indices], 1))


def without_own(found: Neighbors, own: Any, k: int) -> Neighbors:
    """Lists of one more than k, less the point that each query is or, where it is not among them, less the last.

    Parameters
    ----------
    found : Neighbors of shape (m, k + 1) or, where they are all points, (m, k)
        Arrays or tensors.
    own : int64 array or tensor of shape (m,)
    k : int

    Returns
    -------
    Neighbors of shape (m, k)
        Of the same kind.
    """
    distances, indices = (torch.as_tensor(part) for part in found)
    if indices.shape[1] == k:  # all points: one is missing where it is the query
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
