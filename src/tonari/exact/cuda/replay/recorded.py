"""Launches that are captured as a CUDA graph."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch


def record(work: Callable[[], Any], device: Any, earlier: Any = None) -> tuple[Any, Any]:
    """Capture the launches of `work` without running them.

    Parameters
    ----------
    work : callable()
    device : torch.device
    earlier : CUDAGraph, optional
        A graph whose memory is reused, except for tensors that still exist. The two graphs must not run at the same
        time.

    Returns
    -------
    CUDAGraph, and the result of `work`, whose tensors each replay overwrites
        Memory allocated by `work` belongs to the graph.
    """
    stream = _side_stream(device)
    stream.wait_stream(torch.cuda.current_stream(device))
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.stream(stream):
        shared = {} if earlier is None else {"pool": earlier.pool()}
        graph.capture_begin(**shared, capture_error_mode="thread_local")  # other threads may go on allocating
        try:
            result = work()
        finally:
            graph.capture_end()
    return graph, result


@functools.lru_cache(maxsize=64)
def _side_stream(device: Any) -> Any:
    return torch.cuda.Stream(device)
