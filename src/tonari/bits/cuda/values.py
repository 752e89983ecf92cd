"""The values of all pairs of unpacked rows; see kernels/values.py."""

from __future__ import annotations

from typing import Any

from tonari.bits.cuda.memory import POINT_TILE, STEP, TILE
from tonari.bits.cuda.unpack import Unpacked
from tonari.cuda.launch import launch

ROWS, COLUMNS, STAGES, WARPS = TILE, POINT_TILE, 3, 8  # each stage takes 48 KiB of shared memory


def write_values(
    queries: Unpacked, points: Unpacked, metric: str, values: Any, *, first_own: int | None = None
) -> None:
    """Write the value of each pair of a query and a point to `values`.

    Parameters
    ----------
    queries, points : Unpacked
        m queries and n points.
    metric : "hamming" or "jaccard"
    values : float32 tensor of shape (m, n), whose rows are contiguous in memory
        The output.
    first_own : int, optional
        In a self-join, query i is the same row as point ``i + first_own``. If this point exists, the value of the pair
        becomes inf.
    """
    from triton.tools.tensor_descriptor import TensorDescriptor

    from tonari.bits.cuda.kernels.values import values_kernel

    (m, width), n = queries.rows.shape, len(points.rows)
    row_tiles = -(-m // ROWS)
    launch(
        values_kernel,
        row_tiles * -(-n // COLUMNS),
        {
            "queries": TensorDescriptor.from_tensor(queries.rows, [ROWS, STEP]),
            "points": TensorDescriptor.from_tensor(points.rows, [COLUMNS, STEP]),
            "query_counts_ptr": queries.counts,
            "point_counts_ptr": points.counts,
            "values_ptr": values,
            "m": m,
            "n": n,
            "width": width,
            "stride": values.stride(0),
            "row_tiles": row_tiles,
            "first_own": first_own or 0,
        },
        constants={
            "JACCARD": metric == "jaccard",
            "OWN": first_own is not None,
            "ROWS": ROWS,
            "COLUMNS": COLUMNS,
            "STEP": STEP,
            "STAGES": STAGES,
        },
        warps=WARPS,
    )
