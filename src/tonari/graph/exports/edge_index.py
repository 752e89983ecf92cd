"""Export a graph as PyTorch Geometric's ``edge_index``."""

from __future__ import annotations

from typing import Any

from tonari import inputs
from tonari.graph.lists import Lists

_FLOWS = ("source_to_target", "target_to_source")


def to_edge_index(lists: Lists, flow: str) -> tuple[Any, Any]:
    """Export lists; see :meth:`tonari.KNNGraph.to_edge_index`."""
    if flow not in _FLOWS:
        raise ValueError(f"flow={flow!r}: expected {' or '.join(map(repr, _FLOWS))}")
    try:
        import torch
    except ImportError as error:
        raise ImportError("to_edge_index needs PyTorch: pip install torch") from error
    first = int(lists.include_self)
    distances, indices = (inputs.as_tensor(part)[:, first:] for part in lists.found)
    present = indices >= 0
    centres = torch.arange(lists.n, device=indices.device)[:, None].expand_as(indices)[present]
    ends = indices[present].long(), centres
    return torch.stack(ends if flow == _FLOWS[0] else ends[::-1]), distances[present]
