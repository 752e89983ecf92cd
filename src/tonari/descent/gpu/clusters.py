"""k-means on a sample of the rows: where a point's neighbours are likely to be, for a fraction of all comparisons."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch

from tonari.descent.gpu.nearest import nearest

_BLOCK = 1 << 18  # rows that look for their clusters at once


class Clusters(NamedTuple):
    """Points by the cluster that they belong to.

    Attributes
    ----------
    near : int32 tensor of shape (n, probes)
        Clusters near each point, the nearest first.
    order : int64 tensor of shape (n,)
        Points by the cluster that they belong to, then by number.
    bounds : int64 tensor of shape (clusters + 1,)
        Where in that order each cluster begins and the last ends.
    """

    near: Any
    order: Any
    bounds: Any


def find_clusters(
    rows: Any, count: int, probes: int, training: int, sweeps: int, seed: int, metric: str, memory: int
) -> Clusters:
    """Cluster formed rows.

    Parameters
    ----------
    rows : float16 tensor of shape (n, d)
    count : int
        Clusters; some may come out empty.
    probes : int
        Clusters near each point that are wanted, at most `count`.
    training : int
        Rows of the sample for each cluster.
    sweeps : int
        Iterations.
    seed : int
        Of the sample.
    metric : str
        By which clusters are near a point: inner_product or, in formed rows, sqeuclidean.
    memory : int
        Bytes that a search for the nearest of them may take.
    """
    centres = _centres(rows, count, training, sweeps, seed, memory)
    near = _near(rows, centres, min(probes, count), "sqeuclidean", memory)
    order = torch.sort(near[:, 0], stable=True)
    if metric == "inner_product":
        near = _near(rows, centres, min(probes, count), metric, memory)
    numbers = torch.arange(count + 1, dtype=torch.int32, device=rows.device)
    return Clusters(near, order.indices, torch.searchsorted(order.values, numbers))


def _near(rows: Any, centres: Any, probes: int, metric: str, memory: int) -> Any:
    """Centres near each row, int32 (n, probes); some rows at a time, since the exact engine holds lists of all."""
    near = torch.empty((len(rows), probes), dtype=torch.int32, device=rows.device)
    for begin in range(0, len(rows), _BLOCK):
        here = slice(begin, begin + _BLOCK)
        near[here] = nearest(rows[here], centres, probes, metric, memory).indices
    return near


def _centres(rows: Any, count: int, training: int, sweeps: int, seed: int, memory: int) -> Any:
    n = len(rows)
    generator = torch.Generator(device=rows.device).manual_seed(seed)
    drawn = torch.randperm(n, generator=generator, device=rows.device)[: min(n, max(count * training, count))]
    sample = rows[drawn]
    centres = sample[:count].clone()
    for _ in range(sweeps):
        nearest_centre = torch.sort(nearest(sample, centres, 1, "sqeuclidean", memory).indices.view(-1), stable=True)
        numbers = torch.arange(count + 1, dtype=torch.int32, device=rows.device)
        lengths = torch.searchsorted(nearest_centre.values, numbers).diff()
        means = torch.segment_reduce(sample[nearest_centre.indices].float(), "mean", lengths=lengths, axis=0)
        # An empty cluster stays where it was.
        centres = torch.where(lengths[:, None] > 0, means, centres.float()).half()
    return centres
