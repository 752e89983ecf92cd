"""Select, for each row of a graph, the lowest of the points that earlier batches have listed (screens/mirrored.py)."""

from __future__ import annotations

from typing import Any

from tonari.cuda.launch import launch
from tonari.select.cuda.dispatch import k_smallest
from tonari.select.cuda.survivors import power_of_two, warps_for


def lowest_noted(values: Any, points: Any, counts: Any, thresholds: Any, width: int) -> tuple[Any, Any]:
    """Return each row's `width` listed points with the lowest values, and a lower bound on values of all other points.

    Parameters
    ----------
    values, points, counts, thresholds : as in :class:`tonari.exact.cuda.refine.group_lists.Noted`

    Returns
    -------
    int32 (rows, width), float32 (rows,)
        Missing points are -1. The lower bound is -inf if the list had too few slots.
    """
    import torch

    from tonari.exact.cuda.kernels.refine.mirror_notes import lowest_noted_kernel

    rows, room = values.shape
    width = min(width, room - 1)
    lowest = k_smallest(values, width + 1)
    chosen = torch.empty((rows, width), dtype=torch.int32, device=values.device)
    following = torch.empty(rows, dtype=torch.float32, device=values.device)
    launch(
        lowest_noted_kernel,
        rows,
        {
            "lowest_ptr": lowest.values,
            "slots_ptr": lowest.indices,
            "rows_ptr": points,
            "counts_ptr": counts,
            "thresholds_ptr": thresholds,
            "chosen_ptr": chosen,
            "following_ptr": following,
            "width": width,
            "room": room,
        },
        constants={"WIDTH": power_of_two(width)},
        warps=warps_for(power_of_two(width), False),
    )
    return chosen, following
