"""Drop-in for ``pytorch3d.ops.knn_points`` and ``knn_gather``.

Import them by ``from tonari.compat.pytorch3d import knn_points``.

==============================  ====================================================================================
covered                         how
==============================  ====================================================================================
``knn_points``                  squared distances for norm 2, sums of differences for norm 1; gradients to p1 and p2
``knn_gather``                  the points of p2, or features of them, at the indices that ``knn_points`` returned
``lengths1``, ``lengths2``      as in PyTorch3D: rows beyond a cloud's length are padding and may be NaN
``K`` above a cloud's length    the entries of missing neighbours, at the end of a list, are 0
``return_sorted``               checked, no effect: neighbours are always in ascending order of distance
``version``                     checked, no effect: tonari chooses how to search
------------------------------  ------------------------------------------------------------------------------------
refused                         alternative
==============================  ====================================================================================
another ``norm``                :func:`tonari.search`, with ``query_groups`` and ``point_groups``
NaN and infinity in a cloud
==============================  ====================================================================================

Distances are float64 values rounded once: to the dtype of the input, or to float32 for float16 and bfloat16. Equal
distances are in ascending order of index.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from tonari import inputs
from tonari.api import searching
from tonari.compat.arguments import numbers_of
from tonari.core.errors import Unsupported
from tonari.core.hints import missing_from
from tonari.core.process.compiling import not_compiled

__all__ = ["KNN", "knn_gather", "knn_points"]

__getattr__ = missing_from(__name__)

_METRICS = {1: "l1", 2: "sqeuclidean"}
_VERSIONS = range(-1, 4)


class KNN(NamedTuple):
    """The result of :func:`knn_points`.

    Attributes
    ----------
    dists : tensor of shape (N, P1, K)
        Distances, ascending; 0 for missing neighbours.
    idx : int64 tensor of shape (N, P1, K)
        Row numbers within a cloud of p2; 0 for missing neighbours.
    knn : tensor of shape (N, P1, K, D), or None
        The coordinates of the neighbours; 0 for missing ones. None unless `return_nn` is True.
    """

    dists: Any
    idx: Any
    knn: Any


@not_compiled
def knn_points(
    p1: Any,
    p2: Any,
    lengths1: Any = None,
    lengths2: Any = None,
    norm: int = 2,
    K: int = 1,
    version: int = -1,
    return_nn: bool = False,
    return_sorted: bool = True,
) -> KNN:
    """Find the K nearest points of p2 for each point of p1; cloud i of p1 is compared with cloud i of p2.

    Parameters
    ----------
    p1, p2 : floating tensors of shape (N, P1, D) and (N, P2, D)
    lengths1, lengths2 : int tensors of shape (N,), optional
        Number of points in each cloud; the rows after these are padding.
    norm : 1 or 2
    K : int
        Neighbours per point; it may exceed the number of points in a cloud.
    version : int
        -1 to 3; it has no effect.
    return_nn : bool
        Whether to return the coordinates of the neighbours too, as `knn`.
    return_sorted : bool
        No effect: neighbours are always sorted.

    Returns
    -------
    KNN(dists, idx, knn)
        p1 and p2 receive gradients from `dists`, and p2 also from `knn`.

    Examples
    --------
    >>> import torch
    >>> from tonari.compat.pytorch3d import knn_points
    >>> cloud = torch.tensor([[[0.0], [1.0], [3.0]]])
    >>> found = knn_points(cloud, cloud, K=2)
    >>> found.dists.tolist(), found.idx.tolist()
    ([[[0.0, 1.0], [0.0, 1.0], [0.0, 4.0]]], [[[0, 1], [1, 0], [2, 1]]])
    """
    import torch

    if not isinstance(norm, int) or isinstance(norm, bool) or norm not in _METRICS:
        raise Unsupported(f"norm={norm!r}: expected 1 or 2")
    if inputs.check_count(version, "version", least=-1) not in _VERSIONS:
        raise ValueError(f"version={version}: expected -1 to {_VERSIONS[-1]}")
    with_rows = inputs.check_flag(return_nn, "return_nn")
    inputs.check_flag(return_sorted, "return_sorted")
    K = inputs.check_count(K, "K")
    _check_clouds(p1, p2)
    present1, present2 = _present(p1, lengths1, "lengths1"), _present(p2, lengths2, "lengths2")

    (clouds1, rows1), (clouds2, rows2) = present1.nonzero(as_tuple=True), present2.nonzero(as_tuple=True)
    value = torch.float64 if torch.float64 in (p1.dtype, p2.dtype) else torch.float32
    dists = torch.zeros((*p1.shape[:2], K), dtype=value, device=p1.device)
    idx = torch.zeros(dists.shape, dtype=torch.int64, device=p1.device)
    if len(rows1) and len(rows2):
        queries, points = _rows(p1, present1, "p1"), _rows(p2, present2, "p2")
        found = searching.search(
            queries,
            points,
            min(K, p2.shape[1], len(points)),
            metric=_METRICS[norm],
            query_groups=clouds1,
            point_groups=clouds2,
            differentiable=torch.is_grad_enabled() and (p1.requires_grad or p2.requires_grad),
        )
        there, ids = found.indices >= 0, found.indices.long()
        at = clouds1[:, None], rows1[:, None], torch.arange(ids.shape[1], device=p1.device)
        dists = dists.index_put(at, torch.where(there, found.distances, 0))
        idx = idx.index_put(at, torch.where(there, rows2[ids], 0))
    return KNN(dists, idx, knn_gather(p2, idx, lengths2) if with_rows else None)


@not_compiled
def knn_gather(x: Any, idx: Any, lengths: Any = None) -> Any:
    """Gather the neighbours' coordinates or features for the indices that :func:`knn_points` returned.

    Parameters
    ----------
    x : tensor of shape (N, P2, U)
        The points p2, or a row of features for each of them.
    idx : int64 tensor of shape (N, P1, K)
    lengths : int tensor of shape (N,), optional
        Number of points in each cloud.

    Returns
    -------
    tensor of shape (N, P1, K, U)
        Entries from ``lengths[n]`` on are 0. Gradients flow to x.
    """
    import torch

    _check_tensor(x, "x")
    numbers = inputs.kind_of(idx) == "torch" and inputs.name_of_dtype(idx) in ("int32", "int64")
    if not numbers or idx.dim() != 3 or len(idx) != len(x) or idx.device != x.device:
        raise ValueError(f"idx: expected whole numbers of shape ({len(x)}, P1, K) on {x.device}")
    if idx.numel() and not 0 <= int(idx.min()) <= int(idx.max()) < max(1, x.shape[1]):
        raise ValueError(f"idx: has numbers out of range, expected 0 to {x.shape[1] - 1}")
    present = _present(x, lengths, "lengths")
    if not x.shape[1]:
        return x.new_zeros((*idx.shape, x.shape[2]))
    rows = x[torch.arange(len(x), device=x.device)[:, None, None], idx.long()]
    places = torch.arange(idx.shape[2], device=x.device) < present.sum(1)[:, None]
    return torch.where(places[:, None, :, None], rows, 0)


def _check_tensor(x: Any, name: str) -> None:
    """Check a batch of clouds: a floating tensor of shape (clouds, points, columns)."""
    if inputs.kind_of(x) != "torch" or not x.is_floating_point():
        what = f"{inputs.name_of_dtype(x)} of torch" if inputs.kind_of(x) == "torch" else type(x).__name__
        raise TypeError(f"{name}: expected a torch tensor of a floating dtype, got {what}")
    if x.dim() != 3:
        raise ValueError(f"{name}: expected shape (clouds, points, columns), got {tuple(x.shape)}")


def _check_clouds(p1: Any, p2: Any) -> None:
    """Check that two batches of clouds have the same number of clouds and columns, and the same device."""
    _check_tensor(p1, "p1")
    _check_tensor(p2, "p2")
    if p1.shape[0] != p2.shape[0] or p1.shape[2] != p2.shape[2] or not p1.shape[2]:
        raise ValueError(
            f"p1 of shape {tuple(p1.shape)} and p2 of shape {tuple(p2.shape)} must have the same number of clouds and "
            "of columns"
        )
    if p1.device != p2.device:
        raise ValueError(f"p1 is on {p1.device} and p2 on {p2.device}, expected one device")


def _rows(clouds: Any, present: Any, name: str) -> Any:
    """Return the points of all clouds as rows without padding.

    Check their values, unless a CUDA kernel will do that.
    """
    rows = clouds[present]
    if not rows.is_cuda:
        inputs.as_rows(rows.detach(), f"{name} (without padding)")
    return rows


def _present(clouds: Any, lengths: Any, name: str) -> Any:
    """Return a mask of shape (N, P) that is True for points and False for padding."""
    import torch

    count, most = clouds.shape[:2]
    if lengths is None:
        return torch.ones((count, most), dtype=torch.bool, device=clouds.device)
    numbers = numbers_of(lengths, name, f"({count},)")
    if numbers.dtype.kind not in "iu" or numbers.shape != (count,):
        raise ValueError(f"{name}: expected {count} whole numbers, got {numbers.dtype} of shape {numbers.shape}")
    if count and (numbers.min() < 0 or numbers.max() > most):
        raise ValueError(f"{name}: has numbers from {numbers.min()} to {numbers.max()}, expected 0 to {most}")
    sizes = torch.as_tensor(numbers.astype("int64"), device=clouds.device)
    return torch.arange(most, device=clouds.device) < sizes[:, None]
