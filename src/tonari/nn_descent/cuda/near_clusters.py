"""Find the centres nearest to a row."""

from __future__ import annotations

from typing import Any

import torch

from tonari.cuda.launch import launch
from tonari.nn_descent import tuning
from tonari.nn_descent.cuda.form import SHORT, Form, step_of
from tonari.nn_descent.memory import cluster_bytes
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
