"""Launches that are captured as a CUDA graph."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

from tonari.cuda import memory


def check_room(device: Any, nbytes: int) -> None:
    """Raise MemoryError if the driver has less free memory than a graph of `nbytes` needs.

    During a capture torch gives back none of the memory that it has cached, so the driver has to
    provide the memory of a graph. If the driver has none left in the middle of a capture, the process may be aborted.
    """
    free = memory.driver_memory(device)
    if free < nbytes:
        raise MemoryError(f"a CUDA graph of them may need {nbytes} bytes, and {device} has {free} free")


def record(work: Callable[[], Any], device: Any, earlier: Any = None, *, run_first: bool = False) -> tuple[Any, Any]:
    """Capture the launches of `work` without running them; call :func:`check_room` just before.

    Parameters
    ----------
    work : callable()
    device : torch.device
    earlier : CUDAGraph, optional
        A graph whose memory is reused, except for tensors that still exist. The two graphs must not run at the same
        time.
    run_first : bool
        Run `work` before on the stream of the capture, where libraries may allocate memory at their first use.

    Returns
    -------
    CUDAGraph, and the result of `work`, whose tensors each replay overwrites
        Memory allocated by `work` belongs to the graph.
    """
    stream = _side_stream(device)
    stream.wait_stream(torch.cuda.current_stream(device))
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.stream(stream):
        if run_first:
            work()
        shared = {} if earlier is None else {"pool": earlier.pool()}
        graph.capture_begin(**shared, capture_error_mode="thread_local")  # other threads may go on allocating
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
