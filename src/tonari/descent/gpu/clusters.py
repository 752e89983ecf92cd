"""k-means on a sample of the rows: where a point's neighbours are likely to be, for a fraction of all comparisons."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch

from tonari.descent.gpu.nearest import nearest
from tonari.planning_descent import DescentPlan

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


def find_clusters(rows: Any, plan: DescentPlan) -> Clusters:
    """Cluster formed rows.

    Parameters
    ----------
    rows : float16 tensor of shape (n, d)
    plan : DescentPlan
        Of it clusters, probes, training, sweeps, seed and metric are read; some clusters may come out empty. Searches
        for the nearest take its working memory.
    """
    centres = _centres(rows, plan)
    near = _near(rows, centres, plan, "sqeuclidean")
    order = torch.sort(near[:, 0], stable=True)
    if plan.metric == "inner_product":
        near = _near(rows, centres, plan, plan.metric)
    numbers = torch.arange(plan.clusters + 1, dtype=torch.int32, device=rows.device)
    return Clusters(near, order.indices, torch.searchsorted(order.values, numbers))


def _near(rows: Any, centres: Any, plan: DescentPlan, metric: str) -> Any:
    """Centres near each row, int32 (n, probes); some rows at a time, since the exact engine holds lists of all."""
    near = torch.empty((len(rows), plan.probes), dtype=torch.int32, device=rows.device)
    for begin in range(0, len(rows), _BLOCK):
        here = slice(begin, begin + _BLOCK)
        near[here] = nearest(rows[here], centres, plan.probes, metric, plan.working_bytes).indices
    return near


def _centres(rows: Any, plan: DescentPlan) -> Any:
    n, count = len(rows), plan.clusters
    generator = torch.Generator(device=rows.device).manual_seed(plan.seed)
    drawn = torch.randperm(n, generator=generator, device=rows.device)[: min(n, count * plan.training)]
    sample = rows[drawn]
    centres = sample[:count].clone()
    for _ in range(plan.sweeps):
        nearest_centre = torch.sort(
            nearest(sample, centres, 1, "sqeuclidean", plan.working_bytes).indices.view(-1), stable=True
        )
        numbers = torch.arange(count + 1, dtype=torch.int32, device=rows.device)
        lengths = torch.searchsorted(nearest_centre.values, numbers).diff()
        means = torch.segment_reduce(sample[nearest_centre.indices].float(), "mean", lengths=lengths, axis=0)
        # An empty cluster stays where it was.
        centres = torch.where(lengths[:, None] > 0, means, centres.float()).half()
    return centres
