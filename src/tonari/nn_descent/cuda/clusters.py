"""k-means on a sample of the rows: where a point's neighbours are likely to be, for a fraction of all comparisons."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch

from tonari.metrics import get_metric
from tonari.nn_descent.cuda.form import Form, terms_of
from tonari.nn_descent.cuda.near_clusters import near_centres
from tonari.nn_descent.memory import MEANS_COLUMNS
from tonari.nn_descent.plan import DescentPlan


class Clusters(NamedTuple):
    """Points by the cluster that they belong to.

    Attributes
    ----------
    near : int16 or int32 tensor of shape (n, probes)
        Clusters near each point, the nearest first.
    order : int64 tensor of shape (n,)
        Points by the cluster that they belong to, then by number.
    bounds : int64 tensor of shape (clusters + 1,)
        Where in that order each cluster begins and the last ends.
    """

    near: Any
    order: Any
    bounds: Any


def find_clusters(form: Form, plan: DescentPlan) -> Clusters:
    """Cluster formed rows.

    Parameters
    ----------
    form : Form of n points
    plan : DescentPlan
        Of it clusters, probes, training, sweeps, seed and metric are read; some clusters may come out empty.
    """
    centres = _centres(form, plan)
    products = get_metric(plan.metric).products
    near = near_centres(form, Form(centres, *terms_of(centres, products=products)), plan.n_probe)
    homes = near[:, 0]
    if products:  # there a point's cluster is not where its neighbours are
        by_distance = Form(form.rows, *terms_of(form.rows, products=False))
        homes = near_centres(by_distance, Form(centres, *terms_of(centres, products=False)), 1)[:, 0]
    order = torch.sort(homes, stable=True)
    return Clusters(near, order.indices, _bounds(order.values, plan.n_clusters))


def _centres(form: Form, plan: DescentPlan) -> Any:
    """Means of a sample's rows, float16 (clusters, d)."""
    n, count = len(form.rows), plan.n_clusters
    rows = form.rows
    products = get_metric(plan.metric).products
    by_distance = Form(rows, *terms_of(rows, products=False)) if products else form
    generator = torch.Generator(device=rows.device).manual_seed(plan.seed)
    drawn = torch.randperm(n, generator=generator, device=rows.device)[: min(n, count * plan.train_per_cluster)]
    centres = rows[drawn[:count]]
    for _ in range(plan.kmeans_iters):
        nearest = near_centres(by_distance, Form(centres, *terms_of(centres, products=False)), 1, drawn)
        order = torch.sort(nearest.view(-1), stable=True)
        members = drawn[order.indices]
        lengths = _bounds(order.values, count).diff()
        for begin in range(0, rows.shape[1], MEANS_COLUMNS):
            here = slice(begin, begin + MEANS_COLUMNS)
            sample = rows[:, here].index_select(0, members).float()
            means = torch.segment_reduce(sample, "mean", lengths=lengths, axis=0)
            # An empty cluster stays where it was.
            centres[:, here] = torch.where(lengths[:, None] > 0, means, centres[:, here].float()).half()
    return centres


def _bounds(ordered: Any, count: int) -> Any:
    """Where each of the numbers 0 ... count - 1 begins among ordered ones, and the last ends."""
    return torch.searchsorted(ordered, torch.arange(count + 1, dtype=ordered.dtype, device=ordered.device))
