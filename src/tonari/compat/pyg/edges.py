"""Conversion of neighbour lists to PyG's edges, int64 tensors of shape (2, edges)."""

from __future__ import annotations

from typing import Any

from tonari.core.results.radius_neighbors import RadiusNeighbors


def no_edges(like: Any) -> Any:
    """Return a tensor of shape (2, 0), which has no edges, on the device of `like`."""
    return like.new_empty((2, 0)).long()


def edges_of(indices: Any) -> Any:
    """Convert indices of shape (n, k), -1 if missing, to edges: queries in row 0, their neighbours in row 1."""
    import torch

    rows = torch.arange(len(indices), device=indices.device)[:, None].expand_as(indices)
    present = indices >= 0
    return torch.stack([rows[present], indices[present].long()])


def edges_of_lists(found: RadiusNeighbors) -> Any:
    """Convert the result of a radius search to edges: queries in row 0, their neighbours in row 1."""
    import torch

    rows = torch.arange(len(found.indptr) - 1, device=found.indptr.device)
    return torch.stack([rows.repeat_interleave(found.indptr.diff()), found.indices.long()])


def flowing(edges: Any, flow: str) -> Any:
    """Order both rows of edges (centre, neighbour) by `flow`: (neighbour, centre) for "source_to_target"."""
    return edges.flip(0) if flow == "source_to_target" else edges
