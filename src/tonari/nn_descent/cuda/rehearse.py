"""A rehearsal of NN-Descent on CUDA: record the kernels that a plan launches (cuda/compiling/rehearsal.py).

The rehearsal runs each step that does not depend on data once: the form, the clusters, the scan of the first and of the
last block, a light round (which makes fewer comparisons) and a full round. The exact search for rows with incomplete
lists has its own rehearsal.
"""

from __future__ import annotations

from typing import Any

import torch

from tonari.core.results.neighbors import Neighbors
from tonari.core.rows.slices import cut
from tonari.cuda.compiling.rehearsal import numbers_from, to_visit
from tonari.exact.cuda.refine.groups import refine_groups
from tonari.metrics import get_metric
from tonari.nn_descent.cuda.clusters import near_centres
from tonari.nn_descent.cuda.form import Form, form_of, terms_of
from tonari.nn_descent.cuda.rounds import Marked, candidates, mark, reverse_of
from tonari.nn_descent.cuda.scan import best_of, scan_block
from tonari.nn_descent.memory import scanned_rows
from tonari.nn_descent.plan import DescentPlan
from tonari.select.cuda.dispatch import k_smallest


def rehearse_descent(plan: DescentPlan, dtype: str) -> None:
    """Run the steps of a plan on tensors without data, to record all kernels whose launches depend only on sizes.

    Parameters
    ----------
    plan : DescentPlan
        A plan whose update is not "gnnd".
    dtype : str
        The dtype of the points.
    """
    points = torch.empty((plan.n, plan.d), dtype=getattr(torch, dtype), device="meta")
    if plan.start == "clusters":
        _scan(form_of(points, plan.metric), plan)
    for made in dict.fromkeys((plan.light, plan)) if plan.light_rounds else (plan,):
        _round(points, made)


def _scan(form: Form, plan: DescentPlan) -> None:
    """Launch the kernels that find clusters and compare points with their members."""
    (n, width), products = form.rows.shape, get_metric(plan.metric).products
    centres = form.rows.new_empty((plan.n_clusters, width))
    by_distance = Form(form.rows, *terms_of(form.rows, products=False)) if products else form
    around = Form(centres, *terms_of(centres, products=False))
    drawn = numbers_from(0, min(n, plan.n_clusters * plan.train_per_cluster), "meta")
    near_centres(by_distance, around, 1, drawn)
    if products:
        near_centres(by_distance, around, 1)
    near = near_centres(form, Form(centres, *terms_of(centres, products=products)), plan.n_probe)
    order, bounds = (numbers_from(0, count, "meta") for count in (n, plan.n_clusters + 1))
    best = best_of(plan.n_probe, plan.list_size)
    for here in to_visit(cut(n, scanned_rows(plan)), order.device):
        scores, _ = scan_block(form, order, bounds, near[here], here.start, best, 0)
        k_smallest(scores, min(plan.list_size, scores.shape[1]))


def _round(points: Any, plan: DescentPlan) -> None:
    """Launch the kernels of a round for the first and the last block of points."""
    n, double = len(points), points.dtype == torch.float64
    entries = torch.empty((n, plan.list_size), dtype=torch.int32, device="meta")
    order, made = numbers_from(0, n, "meta"), Marked.empty(entries, plan.k, double=double)
    reverse = reverse_of(entries, plan.n_hubs, plan.reverse)
    for here in to_visit(cut(n, plan.block), order.device):
        rows = here.stop - here.start
        met = candidates(entries, reverse, order, here.start, rows, plan, None)
        queries = points.new_empty((rows, plan.d))
        best = refine_groups(queries, points, met, plan.list_size, metric=plan.metric, group=1, double=double)
        mark(order, here.start, entries, Neighbors(*best), made, plan.n_hubs)
