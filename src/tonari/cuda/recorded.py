"""Capture launches as a CUDA graph."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

from tonari.cuda import memory


def check_room(device: Any, nbytes: int) -> None:
    """Raise MemoryError if the driver has fewer free bytes than the `nbytes` that a CUDA graph needs.

    During a capture, torch cannot use the memory that it has cached, so the driver has to provide all memory of the
    graph. If the driver runs out of memory in the middle of a capture, the process may be aborted.
    """
    free = memory.driver_memory(device)
    if free < nbytes:
        raise MemoryError(f"a CUDA graph of them may need {nbytes} bytes, and {device} has {free} free")


def record(work: Callable[[], Any], device: Any, earlier: Any = None, *, run_first: bool = False) -> tuple[Any, Any]:
    """Capture the launches of `work` as a CUDA graph, without running them; call :func:`check_room` just before.

    Parameters
    ----------
    work : callable()
    device : torch.device
    earlier : CUDAGraph, optional
        A CUDA graph whose memory is reused, except for its tensors that still exist. The two graphs must not run at the
        same time.
    run_first : bool
        Whether to run `work` once before the capture, on the same stream, so that libraries can allocate memory at
        their first use.

    Returns
    -------
    CUDAGraph, and the result of `work`
        Each replay overwrites the tensors of the result. Memory that `work` allocates belongs to the CUDA graph.
    """
    stream = _side_stream(device)
    stream.wait_stream(torch.cuda.current_stream(device))
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.stream(stream):
        if run_first:
            work()
        shared = {} if earlier is None else {"pool": earlier.pool()}
        graph.capture_begin(**shared, capture_error_mode="thread_local")  # lets other threads allocate
        try:
            result = work()
        finally:
            graph.capture_end()
    if run_first:
        torch.cuda.current_stream(device).wait_stream(stream)
    return graph, result


@functools.lru_cache(maxsize=64)
def _side_stream(device: Any) -> Any:
    return torch.cuda.Stream(device)
