"""Lists of neighbours as the edges of PyG."""

from __future__ import annotations

from typing import Any

from tonari.core.results.radius_neighbors import RadiusNeighbors


def no_edges(like: Any) -> Any:
    """Return an empty tensor of edges on the device of a tensor."""
    return like.new_empty((2, 0)).long()


def edges_of(indices: Any) -> Any:
    """Return lists of neighbours as edges: rows in row 0, their neighbours in row 1."""
    import torch

    rows = torch.arange(len(indices), device=indices.device)[:, None].expand_as(indices)
    present = indices >= 0
    return torch.stack([rows[present], indices[present].long()])


def edges_of_lists(found: RadiusNeighbors) -> Any:
    """Return lists of different lengths as edges: rows in row 0, their neighbours in row 1."""
    import torch

    rows = torch.arange(len(found.indptr) - 1, device=found.indptr.device)
    return torch.stack([rows.repeat_interleave(found.indptr.diff()), found.indices.long()])


def flowing(edges: Any, flow: str) -> Any:
    """Return the edges between centres and neighbours in the direction of messages."""
    return edges.flip(0) if flow == "source_to_target" else edges
