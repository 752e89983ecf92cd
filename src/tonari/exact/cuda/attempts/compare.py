"""Compute the exact values of all points for a few rows, using kernels that the first attempt has already compiled.

The kernels of a first attempt refine a fixed number of groups per row. Here all groups are divided into parts of that
many groups, and a copy of each row is compared with each part. The k best of the results of all parts are the answer.
"""

from __future__ import annotations

from typing import Any

from tonari.core.rows.slices import cut
from tonari.cuda.compiling.rehearsal import all_repeated, each_repeated, joined, numbers_from, to_visit
from tonari.exact.cuda import tuning
from tonari.exact.cuda.refine.groups import refine_groups
from tonari.exact.cuda.rows.groups import group_count
from tonari.metrics import get_metric


def compare_few(
    queries: Any, points: Any, k: int, *, metric: str, group: int, columns: int, own: Any = None, double: bool
) -> tuple[Any, Any]:
    """Find the k best of all points for a few queries.

    Parameters
    ----------
    queries, points, k, metric, group, own, double
        As for :func:`tonari.exact.cuda.refine.groups.refine_groups`; at least one query.
    columns : int
        The number of groups in a part: as many as a first attempt refines per row, so that its kernels can be used.

    Returns
    -------
    distances, indices : as from ``refine_groups``
    """
    import torch

    device = points.device
    parts = -(-group_count(len(points), group) // columns)
    # Numbers after the last group stand for empty groups.
    numbers = numbers_from(0, parts * columns, device, torch.int32)
    found = []
    block = max(1, tuning.COMPARED_ENTRIES // (parts * k))
    for here in to_visit(cut(len(queries), block), device):
        rows = here.stop - here.start
        distances, indices = refine_groups(
            each_repeated(queries[here], parts),
            points,
            all_repeated(numbers.view(parts, columns), rows),
            k,
            metric=metric,
            group=group,
            own=None if own is None else each_repeated(own[here], parts),
            double=double,
        )
        # In a rehearsal, only the launches matter; importing modules for the rest would take seconds.
        if device.type == "meta":
            found.append((distances[:rows], indices[:rows]))
            continue
        # Order by value, and by index where values are equal; missing neighbours come last.
        indices, order = indices.masked_fill(indices < 0, 2**31 - 1).view(rows, parts * k).sort(1)
        distances = distances.view(rows, parts * k).gather(1, order)
        best = distances.sort(dim=1, stable=True, descending=get_metric(metric).descending)
        indices = indices.gather(1, best.indices[:, :k])
        found.append((best.values[:, :k].contiguous(), indices.masked_fill_(indices == 2**31 - 1, -1)))
    distances, indices = zip(*found, strict=True)
    return joined(distances), joined(indices)
