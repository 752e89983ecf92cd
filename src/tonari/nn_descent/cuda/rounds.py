"""One round: compare every point with the neighbours of its neighbours, and keep the nearest in its own list."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch

from tonari.core.results.neighbors import Neighbors
from tonari.cuda.compiling.rehearsal import numbers_from
from tonari.cuda.launch import launch
from tonari.exact.cuda.refine.groups import refine_groups
from tonari.nn_descent import tuning
from tonari.nn_descent.backend import Round
from tonari.nn_descent.entries import ID, MISSING, NEW
from tonari.nn_descent.memory import candidate_slots, columns_sorted
from tonari.nn_descent.plan import DescentPlan
from tonari.select.cuda.ordering.merge import empty_lists


def reverse_of(entries: Any, hubs: int, room: int) -> Any:
    """Find, for each point, up to `room` points that list it among their first `hubs` entries.

    Parameters
    ----------
    entries : int32 tensor of shape (n, size)

    Returns
    -------
    int32 tensor of shape (n, room)
        The points that list each point, in the order of (column, row) of the entries. A point is NEW if its entry is
        NEW. Rows are padded with MISSING.
    """
    from tonari.nn_descent.cuda.kernels.reverse import reverse_kernel

    n, size = entries.shape
    device = entries.device
    found = torch.full((n, room), MISSING, dtype=torch.int32, device=device)
    counts = torch.zeros(n, dtype=torch.int64, device=device)
    points = numbers_from(0, n + 1, device, torch.int32)
    step = columns_sorted(n, hubs)
    for column in range(0, min(hubs, size), step):
        some = entries[:, column : min(column + step, hubs, size)].T
        listed, numbers, firsts = _listed(some, points)
        launch(
            reverse_kernel,
            -(-some.numel() // tuning.REVERSE_BLOCK),
            {
                "listed_ptr": listed,
                "numbers_ptr": numbers,
                "firsts_ptr": firsts,
                "counts_ptr": counts,
                "entries_ptr": entries,
                "reverse_ptr": found,
                "pairs": some.numel(),
                "n": n,
                "room": room,
                "size": size,
                "column": column,
            },
            constants={"BLOCK": tuning.REVERSE_BLOCK, "NEW": NEW},
            warps=4,
        )
        if device.type != "meta":
            counts += firsts.diff()
    return found


def _listed(some: Any, points: Any) -> tuple[Any, Any, Any]:
    """Sort the entries in some columns by id; return the ids, the entries' positions, and where each id begins."""
    if some.device.type == "meta":  # a rehearsal skips the rest, because importing torch's sort takes seconds
        numbers, firsts = (
            torch.empty(count, dtype=torch.int64, device="meta") for count in (some.numel(), len(points))
        )
        return torch.empty(some.numel(), dtype=torch.int32, device="meta"), numbers, firsts
    listed, numbers = torch.sort(torch.where(some < 0, len(points) - 1, some & ID).reshape(-1), stable=True)
    return listed, numbers, torch.searchsorted(listed, points)


def round_of(points: Any, entries: Any, order: Any, plan: DescentPlan, boundary: int | None = None) -> Round:
    """Run one round over all points.

    Parameters
    ----------
    points : tensor of shape (n, d)
    entries : int32 tensor of shape (n, list_size)
    order : int64 tensor of shape (n,)
        The order in which points are processed, a permutation. Near points should be adjacent, so that they share the
        cache; the result does not depend on the order.
    boundary : int, optional
        Compare only points of different graphs: ids below this number belong to the first graph.
    """
    n, size = entries.shape
    double = points.dtype == torch.float64
    reverse = reverse_of(entries, plan.n_hubs, plan.reverse)
    marked = Marked.empty(entries, plan.k, double=double)
    for begin in range(0, n, plan.block):
        rows = order[begin : begin + plan.block]
        met = candidates(entries, reverse, order, begin, len(rows), plan, boundary)
        best = refine_groups(points[rows], points, met, size, metric=plan.metric, group=1, double=double)
        mark(order, begin, entries, Neighbors(*best), marked, plan.n_hubs)
    return Round(marked.entries, marked.found, int(marked.changed.sum()), float(marked.sums.sum()))


def candidates(
    entries: Any, reverse: Any, order: Any, begin: int, rows: int, plan: DescentPlan, boundary: int | None
) -> Any:
    """Return the ids in the list of each point of a block, followed by the ids of its candidates.

    The result is int32 of shape (rows, list_size + width), padded with -1.
    """
    from tonari.nn_descent.cuda.kernels.candidates import candidates_kernel

    size, slots = entries.shape[1], candidate_slots(plan)
    device = entries.device
    met = torch.full((rows, size + plan.width), MISSING, dtype=torch.int32, device=device)
    tile = _rows_of_a_program(device)
    launch(
        candidates_kernel,
        -(-rows // tile),
        {
            "order_ptr": order,
            "entries_ptr": entries,
            "reverse_ptr": reverse,
            "sorted_ptr": torch.empty((rows, slots), dtype=torch.int32, device=device),
            "out_ptr": met,
            "first": begin,
            "rows": rows,
            "boundary": 0 if boundary is None else boundary,
        },
        constants={
            "SIZE": size,
            "HUBS": min(plan.n_hubs, size),
            "ROOM": plan.reverse,
            "BREADTH": min(plan.neighbors_per_hub, size),
            "WIDTH": plan.width,
            "SLOTS": slots,
            "ROWS": tile,
            "ACROSS": boundary is not None,
            "NEW": NEW,
            "ID": ID,
        },
        warps=1,
    )
    return met


class Marked(NamedTuple):
    """The neighbour lists of n points after a round, and the number of changes in each.

    Attributes
    ----------
    entries : int32 tensor of shape (n, list_size)
    found : Neighbors of tensors of shape (n, k)
    changed : int32 tensor of shape (n,)
        The number of new neighbours among the first k of each point.
    sums : float64 tensor of shape (n,)
        The sum of the distances from each point to its first k neighbours.
    """

    entries: Any
    found: Neighbors
    changed: Any
    sums: Any

    @classmethod
    def empty(cls, entries: Any, k: int, *, double: bool) -> Marked:
        """Allocate the results of a round on the device of the entries, uninitialized."""
        n, device = len(entries), entries.device
        return cls(
            entries.new_empty(entries.shape),  # on the device "meta", empty_like takes seconds to import
            empty_lists(n, k, n, double=double, device=device),
            torch.empty(n, dtype=torch.int32, device=device),
            torch.empty(n, dtype=torch.float64, device=device),
        )


def mark(order: Any, begin: int, entries: Any, best: Neighbors, made: Marked, hubs: int) -> None:
    """Write the new lists of a block of points, and count their changes."""
    from tonari.nn_descent.cuda.kernels.mark import mark_kernel

    size = entries.shape[1]
    tile = _rows_of_a_program(entries.device)
    launch(
        mark_kernel,
        -(-len(best.indices) // tile),
        {
            "order_ptr": order,
            "old_ptr": entries,
            "ids_ptr": best.indices,
            "distances_ptr": best.distances,
            "new_ptr": made.entries,
            "found_ids_ptr": made.found.indices,
            "found_distances_ptr": made.found.distances,
            "changed_ptr": made.changed,
            "sums_ptr": made.sums,
            "first": begin,
            "rows": len(best.indices),
            "k": made.found.indices.shape[1],
        },
        constants={
            "SIZE": size,
            "HUBS": min(hubs, size),
            "PADDED": 1 << (size - 1).bit_length(),
            "ROWS": tile,
            "NEW": NEW,
            "ID": ID,
        },
        warps=1,
    )


def _rows_of_a_program(device: Any) -> int:
    """Return the rows per program: 1 on a GPU, where one row fills the registers; more in Triton's interpreter."""
    return 64 if device.type == "cpu" else 1
