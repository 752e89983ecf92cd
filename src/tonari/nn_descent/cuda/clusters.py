"""Cluster the points by k-means on a sample; a point's neighbours are likely to be in the clusters near it."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch

from tonari.core.rows.draws import Purpose, derived_seed
from tonari.cuda.launch import launch
from tonari.metrics import get_metric
from tonari.nn_descent import tuning
from tonari.nn_descent.cuda.form import SHORT, Form, step_of, terms_of
from tonari.nn_descent.memory import cluster_bytes
from tonari.nn_descent.plan import DescentPlan
from tonari.nn_descent.planning.planner import MOST_NEAR_ON_CUDA

# rows and centres per tile; each column of a tile keeps its two nearest centres
QUERIES, CENTRES = 64, MOST_NEAR_ON_CUDA // 2


def near_centres(form: Form, centres: Form, count: int, order: Any = None) -> Any:
    """Find the nearest centres of each row; kernels/near.py explains when one may be missed.

    Parameters
    ----------
    form : Form of n points
    centres : Form
        The form of the centres for the same metric; only its rows and member terms are used.
    count : int
        At most MOST_NEAR_ON_CUDA and the number of centres.
    order : int64 tensor, optional
        Row numbers of the rows to search for. Default: all.

    Returns
    -------
    int16 or int32 tensor of shape (rows, count)
        Indices of centres, distinct within a row, nearest first.
    """
    from tonari.nn_descent.cuda.kernels.near import near_kernel

    rows, d = form.rows.shape
    m = rows if order is None else len(order)
    clusters = len(centres.rows)
    number = getattr(torch, f"int{8 * cluster_bytes(clusters)}")
    near = torch.empty((m, count), dtype=number, device=form.rows.device)
    launch(
        near_kernel,
        -(-m // QUERIES),
        {
            "rows_ptr": form.rows,
            "order_ptr": order,
            "query_terms_ptr": form.query_terms,
            "centres_ptr": centres.rows,
            "centre_terms_ptr": centres.member_terms,
            "near_ptr": near,
            "rows": m,
            "centres": clusters,
            "tile_bits": (-(-clusters // CENTRES)).bit_length(),
        },
        constants={
            "D": d,
            "STEP": step_of(d) if d <= SHORT else tuning.NEAR_STEP,
            "ORDERED": order is not None,
            "QUERIES": QUERIES,
            "CENTRES": CENTRES,
            "BEST": count,
        },
        warps=tuning.NEAR_WARPS,
    )
    return near


class Clusters(NamedTuple):
    """Points sorted by cluster.

    Attributes
    ----------
    near : int16 or int32 tensor of shape (n, probes)
        Clusters near each point, nearest first.
    order : int64 tensor of shape (n,)
        Ids of the points, sorted by (cluster, id).
    bounds : int64 tensor of shape (clusters + 1,)
        Cluster c has the points ``order[bounds[c]:bounds[c + 1]]``.
    """

    near: Any
    order: Any
    bounds: Any


def find_clusters(form: Form, plan: DescentPlan) -> Clusters:
    """Cluster the points; some clusters may be empty.

    Parameters
    ----------
    form : Form of n points
    plan : DescentPlan
        The plan; its n_clusters, n_probe, train_per_cluster, kmeans_iters, seed and metric are used.
    """
    centres = _centres(form, plan)
    products = get_metric(plan.metric).products
    near = near_centres(form, Form(centres, *terms_of(centres, products=products)), plan.n_probe)
    homes = near[:, 0]
    if products:  # for inner products, a point is not always in the cluster with which its product is largest
        by_distance = Form(form.rows, *terms_of(form.rows, products=False))
        homes = near_centres(by_distance, Form(centres, *terms_of(centres, products=False)), 1)[:, 0]
    order = torch.sort(homes, stable=True)
    return Clusters(near, order.indices, _bounds(order.values, plan.n_clusters))


def _centres(form: Form, plan: DescentPlan) -> Any:
    """Run k-means on a sample of the rows; return the centres, float16 (clusters, d)."""
    n, count = len(form.rows), plan.n_clusters
    rows = form.rows
    products = get_metric(plan.metric).products
    by_distance = Form(rows, *terms_of(rows, products=False)) if products else form
    drawn = training_rows(n, plan, rows.device)
    centres = rows[drawn[:count]]
    for _ in range(plan.kmeans_iters):
        nearest = near_centres(by_distance, Form(centres, *terms_of(centres, products=False)), 1, drawn)
        order = torch.sort(nearest.view(-1), stable=True)
        members = drawn[order.indices]
        lengths = _bounds(order.values, count).diff()
        for begin in range(0, rows.shape[1], tuning.MEANS_COLUMNS):
            here = slice(begin, begin + tuning.MEANS_COLUMNS)
            sample = rows[:, here].index_select(0, members).float()
            means = torch.segment_reduce(sample, "mean", lengths=lengths, axis=0)
            # An empty cluster keeps its centre.
            centres[:, here] = torch.where(lengths[:, None] > 0, means, centres[:, here].float()).half()
    return centres


def training_rows(n: int, plan: DescentPlan, device: Any) -> Any:
    """Draw the sample on which centres are trained; its first rows are the initial centres."""
    generator = torch.Generator(device=device).manual_seed(derived_seed(plan.seed, Purpose.CLUSTERS))
    drawn = torch.randperm(n, generator=generator, device=device)
    return drawn[: min(n, plan.n_clusters * plan.train_per_cluster)]


def _bounds(ordered: Any, count: int) -> Any:
    """Return where each number below `count` begins in a sorted tensor of numbers, followed by the tensor's length."""
    return torch.searchsorted(ordered, torch.arange(count + 1, dtype=ordered.dtype, device=ordered.device))
