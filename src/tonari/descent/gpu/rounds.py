"""One round: every point meets the neighbours of its neighbours, and keeps the best in its own row."""

from __future__ import annotations

from typing import Any

import torch

from tonari.descent.gpu.reverse import reverse_of
from tonari.descent.lists import ID, MISSING, NEW
from tonari.descent.steps import Round
from tonari.exact.gpu.refine import refine_groups
from tonari.launching import launch
from tonari.planning_descent import DescentPlan
from tonari.results import Neighbors

_STEP = 32  # candidates that a round's rows are cut to whole steps of


def round_of(points: Any, entries: Any, order: Any, plan: DescentPlan, boundary: int | None = None) -> Round:
    """One round over all points, in an order in which near points follow each other, so that caches serve them.

    Parameters
    ----------
    points : tensor of shape (n, d)
    entries : int32 tensor of shape (n, list_size)
    order : int64 tensor of shape (n,)
        A permutation. It changes no result.
    plan : DescentPlan
    boundary : int, optional
    """
    n, size = entries.shape
    double = points.dtype == torch.float64
    reverse = reverse_of(entries, plan.hubs, plan.reverse)
    renewed = torch.empty_like(entries)
    found = Neighbors(
        torch.empty((n, plan.k), dtype=torch.float64 if double else torch.float32, device=points.device),
        torch.empty((n, plan.k), dtype=torch.int32, device=points.device),
    )
    changed = torch.empty(n, dtype=torch.int32, device=points.device)
    for begin in range(0, n, plan.block):
        rows = order[begin : begin + plan.block]
        met = _candidates(entries, reverse, order, begin, len(rows), plan, boundary)
        lists = refine_groups(points[rows], points, met, size, metric=plan.metric, group=1, double=double)
        _mark(order, begin, entries, lists[1], renewed, changed[begin : begin + plan.block], plan)
        found.distances[rows], found.indices[rows] = (part[:, : plan.k] for part in lists)
    finite = torch.where(found.indices >= 0, found.distances, 0.0)
    return Round(renewed, found, int(changed.sum()), float(finite.sum(dtype=torch.float64)))


def _slots(plan: DescentPlan, size: int) -> int:
    """Candidates of a point before equal ones are one, as a power of two."""
    hubs = min(plan.hubs, size)
    wanted = plan.reverse + (hubs + plan.reverse) * min(plan.breadth, size)
    return 1 << (wanted - 1).bit_length()


def _candidates(
    entries: Any, reverse: Any, order: Any, begin: int, rows: int, plan: DescentPlan, boundary: int | None
) -> Any:
    """Ids whose values some points need, int32 (rows, as many as one of them has), -1 behind the last of each."""
    from tonari.descent.gpu._candidates_triton import candidates_kernel

    size, slots = entries.shape[1], _slots(plan, entries.shape[1])
    device = entries.device
    met = torch.full((rows, size + plan.width), MISSING, dtype=torch.int32, device=device)
    counts = torch.empty(rows, dtype=torch.int32, device=device)
    tile = _rows_of_a_program(device)
    launch(
        candidates_kernel,
        -(-rows // tile),
        order,
        entries,
        reverse,
        torch.empty((rows, slots), dtype=torch.int32, device=device),
        met,
        counts,
        begin,
        rows,
        0 if boundary is None else boundary,
        constants={
            "SIZE": size,
            "HUBS": min(plan.hubs, size),
            "ROOM": plan.reverse,
            "BREADTH": min(plan.breadth, size),
            "WIDTH": plan.width,
            "SLOTS": slots,
            "ROWS": tile,
            "ACROSS": boundary is not None,
            "NEW": NEW,
            "ID": ID,
        },
        warps=1,
    )
    most = -(-int(counts.amax()) // _STEP) * _STEP
    return met[:, : max(1, min(most, met.shape[1]))]


def _mark(order: Any, begin: int, entries: Any, ids: Any, renewed: Any, changed: Any, plan: DescentPlan) -> None:
    from tonari.descent.gpu._mark_triton import mark_kernel

    size = entries.shape[1]
    tile = _rows_of_a_program(entries.device)
    launch(
        mark_kernel,
        -(-len(ids) // tile),
        order,
        entries,
        ids,
        renewed,
        changed,
        begin,
        len(ids),
        plan.k,
        constants={
            "SIZE": size,
            "HUBS": min(plan.hubs, size),
            "PADDED": 1 << (size - 1).bit_length(),
            "ROWS": tile,
            "NEW": NEW,
            "ID": ID,
        },
        warps=1,
    )


def _rows_of_a_program(device: Any) -> int:
    """One on a card, whose registers it fills; more where Triton's interpreter takes its time for each program."""
    return 1 if device.type == "cuda" else 64
