"""Tensors that are kept between searches: written on one stream, read on any.

A search runs on the stream that is current when it is called, and launches on one stream are ordered. What outlives a
search (packed points, a tree) may be read on another stream than the one that wrote it, and freed while that one still
reads. So an event marks the end of the writing, every reader waits for it on the device, and the allocator keeps the
memory until all readers are done.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


class Written:
    """Tensors on one device, as written by what the current stream has been given so far.

    Parameters
    ----------
    tensors : torch tensors on one device
        On the CPU, where Triton's interpreter runs, everything is in order anyway.
    """

    def __init__(self, *tensors: Any) -> None:
        import torch

        self._tensors = tensors
        self._device = tensors[0].device
        self._event: Any = None
        if self._device.type == "cuda":
            self._stream = torch.cuda.current_stream(self._device)
            self._event = torch.cuda.Event()
            self._event.record(self._stream)

    def read(self) -> None:
        """Let the current stream wait for the writing, and keep the tensors' memory until it has read them.

        Nothing happens while a CUDA graph is captured: a capture cannot wait for what is outside it. Whoever captures
        has made the same search before, and has waited for its end.
        """
        if self._event is None:
            return
        import torch

        current = torch.cuda.current_stream(self._device)
        if current == self._stream or torch.cuda.is_current_stream_capturing():
            return
        current.wait_event(self._event)
        for tensor in self._tensors:
            tensor.record_stream(current)


def synchronize(devices: Iterable[Any]) -> None:
    """Wait for the current stream of each device; a CPU, where Triton's interpreter runs, has nothing to wait for."""
    import torch

    for device in map(torch.device, devices):
        if device.type == "cuda":
            torch.cuda.current_stream(device).synchronize()
