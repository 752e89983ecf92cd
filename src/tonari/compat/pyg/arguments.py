"""Checks of PyG's arguments, and their conversion to the arguments of tonari's functions."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tonari import inputs
from tonari.compat.arguments import number_of, numbers_of, threads_of

FLOWS = ("source_to_target", "target_to_source")


def rows_of(x: Any, name: str) -> Any:
    """Check a tensor of points of shape (n, d) or (n,), and return it with two dimensions."""
    if inputs.kind_of(x) != "torch":
        raise TypeError(f"{name}: expected a torch tensor, got {type(x).__name__}")
    rows = x.detach().reshape(-1, 1) if x.dim() == 1 else x.detach()
    if rows.numel() or rows.dim() != 2:
        (inputs.as_device_rows if rows.is_cuda else inputs.as_rows)(rows, name)
    return rows


def both_of(x: Any, y: Any) -> tuple[Any, Any]:
    """Check the tensors x and y, which must have the same number of columns, and return them with two dimensions."""
    rows = rows_of(x, "x"), rows_of(y, "y")
    ours, theirs = (tuple(each.shape) for each in rows)
    if ours[1] != theirs[1]:
        raise ValueError(f"x of shape {ours} and y of shape {theirs} must have the same number of columns")
    return rows


def clouds_of(batch: Any, name: str, count: int, batch_size: Any) -> npt.NDArray[np.int64] | None:
    """Check an argument such as `batch`, the cloud id of each point, and return it as int64 of shape (count,)."""
    size = None if batch_size is None else inputs.check_count(batch_size, "batch_size")
    if batch is None:
        return None
    numbers = numbers_of(batch, name, f"({count},)")
    if numbers.shape != (count,) or (count and numbers.dtype.kind not in "iu"):
        raise ValueError(f"{name}: expected {count} whole numbers, got {numbers.dtype} of shape {numbers.shape}")
    if count and numbers.min() < 0:
        raise ValueError(f"{name}: has {numbers.min()}, expected numbers of clouds from 0")
    if count and size is not None and numbers.max() >= size:
        raise ValueError(f"batch_size={size}: {name} has {numbers.max()}, expected numbers below batch_size")
    return numbers.astype(np.int64)


def groups_of(batch_x: Any, batch_y: Any, n: int, m: int, batch_size: Any) -> dict[str, Any]:
    """Check `batch_x` and `batch_y`, which are both given or both None.

    Return the group arguments of tonari's search.
    """
    if (batch_x is None) != (batch_y is None):
        have, lacks = ("batch_x", "batch_y")[:: 1 if batch_y is None else -1]
        raise ValueError(f"{have}: came without {lacks}; give the cloud of each point of x and of each point of y")
    points, queries = clouds_of(batch_x, "batch_x", n, batch_size), clouds_of(batch_y, "batch_y", m, batch_size)
    return {} if points is None else {"query_groups": queries, "point_groups": points}


def options_of(x: Any, num_workers: Any, cosine: Any = False) -> dict[str, Any]:
    """Return the keyword arguments `metric` and `threads` of tonari's search."""
    threads = threads_of(num_workers, "num_workers")
    metric = "cosine" if inputs.check_flag(cosine, "cosine") else "euclidean"
    on_cuda = inputs.kind_of(x) == "torch" and x.is_cuda
    return {"metric": metric, "threads": None if on_cuda else threads}


def within_of(r: Any, most: Any) -> dict[str, Any]:
    """Return the keyword arguments of tonari's radius search for PyG's `r` and `max_num_neighbors`."""
    limit = None if most is None else inputs.check_count(most, "max_num_neighbors")
    return {"radius": number_of(r, "r", least=0.0), "closed": False, "max_neighbors": limit}


def check_flow(flow: Any) -> str:
    """Check the argument `flow`, the direction of messages along edges."""
    if flow not in FLOWS:
        raise ValueError(f"flow={flow!r}: expected {' or '.join(map(repr, FLOWS))}")
    return str(flow)
