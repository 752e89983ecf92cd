"""Find the groups that may contain points within each query's limit, and arrange them in blocks to refine."""

from __future__ import annotations

from typing import Any, NamedTuple

from tonari.cuda.launch import launch
from tonari.exact.cuda import tuning
from tonari.exact.cuda.rows.form import DeviceForm
from tonari.exact.cuda.rows.groups import LEAST_GROUP, group_count
from tonari.exact.cuda.rows.pack import PackedQueries
from tonari.exact.cuda.rows.tiles import Lists
from tonari.metrics import get_metric


class Blocks(NamedTuple):
    """Blocks of parts (groups of LEAST_GROUP points), in the order of rows; all parts of a block belong to one row.

    Attributes
    ----------
    begins : int64 tensor of shape (rows + 1,)
        Row i has the blocks ``begins[i]`` to ``begins[i + 1] - 1``.
    rows : int64 tensor of shape (blocks,)
    parts : int32 tensor of shape (blocks, size)
        Group numbers of the parts, -1 in the padding.
    """

    begins: Any
    rows: Any
    parts: Any


def thresholds_for(packed: PackedQueries, form: DeviceForm, limits: Any) -> Any:
    """Return, for each row, an upper bound on the scores of all points within its limit: float32 (rows,).

    Parameters
    ----------
    limits : float32 or float64 tensor of shape (rows,), contiguous
        The largest returned value that is within the limit, in the dtype of returned values; not NaN.
    """
    import torch

    from tonari.exact.cuda.kernels.refine.within import thresholds_kernel

    thresholds = torch.empty(len(limits), dtype=torch.float32, device=limits.device)
    launch(
        thresholds_kernel,
        -(-len(limits) // tuning.THRESHOLD_ROWS),
        {
            "shift_ptr": packed.shift,
            "limits_ptr": limits,
            "scale_ptr": form.scale,
            "thresholds_ptr": thresholds,
            "rows": len(limits),
            "d": form.d,
        },
        constants={
            "METRIC": get_metric(form.metric),
            "DOUBLE": limits.dtype == torch.float64,
            "ROWS": tuning.THRESHOLD_ROWS,
        },
        warps=4,
        fused=False,
    )
    return thresholds


def blocks_of_lists(lists: Lists, size: int) -> Blocks:
    """Return the parts that complete lists mark as near, in blocks of `size` parts."""
    from tonari.exact.cuda.kernels.refine.within import listed_parts_kernel

    rows, segments = lists.counts.shape

    def run(fill: bool, out: dict[str, Any]) -> None:
        launch(
            listed_parts_kernel,
            rows,
            {"entries_ptr": lists.entries, "counts_ptr": lists.counts, **out, "segments": segments, "room": lists.room},
            constants={"FILL": fill, "TILE": tuning.THRESHOLD_SLOTS},
            warps=4,
        )

    return _blocks(run, lists.counts, size)


def blocks_of_minima(minima: Any, thresholds: Any, size: int) -> Blocks:
    """Return the groups whose minimum is at or below the row's threshold, in blocks of `size` groups."""
    from tonari.exact.cuda.kernels.refine.within import lowest_parts_kernel

    rows, groups = minima.shape

    def run(fill: bool, out: dict[str, Any]) -> None:
        launch(
            lowest_parts_kernel,
            rows,
            {"minima_ptr": minima, "thresholds_ptr": thresholds, **out, "groups": groups},
            constants={"FILL": fill, "TILE": tuning.THRESHOLD_SLOTS},
            warps=4,
        )

    return _blocks(run, minima, size)


def blocks_of_all(rows: int, n: int, size: int, device: Any) -> Blocks:
    """Return, for each row, all groups of n points, in blocks of `size` groups."""
    import torch

    each = -(-group_count(n, LEAST_GROUP) // size)
    numbers = torch.arange(rows * each, device=device)
    # Group numbers beyond the last group stand for empty groups.
    parts = torch.arange(each * size, dtype=torch.int32, device=device).view(each, size)
    return Blocks(torch.arange(rows + 1, device=device) * each, numbers // each, parts.repeat(rows, 1))


def _blocks(run: Any, rows_like: Any, size: int) -> Blocks:
    """Call `run` twice: to count the parts of each row, and to write them to blocks of `size` parts."""
    import torch

    rows, device = len(rows_like), rows_like.device
    totals = torch.empty(rows, dtype=torch.int32, device=device)
    run(False, {"begins_ptr": None, "parts_ptr": None, "totals_ptr": totals})
    begins = torch.zeros(rows + 1, dtype=torch.int64, device=device)
    each = (totals + (size - 1)) // size
    torch.cumsum(each, 0, out=begins[1:])
    count = int(begins[-1])
    parts = torch.full((count, size), -1, dtype=torch.int32, device=device)
    run(True, {"begins_ptr": begins[:-1] * size, "parts_ptr": parts, "totals_ptr": None})
    numbers = torch.arange(rows, device=device)
    return Blocks(begins, torch.repeat_interleave(numbers, each, output_size=count), parts)
