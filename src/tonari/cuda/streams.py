"""Synchronise tensors that are kept between searches: one stream writes them, and any stream may read them.

A search runs on the stream that is current when it is called; launches on one stream are ordered. Tensors that outlive
a search (packed points, a tree) may be read on another stream than the one that wrote them, and may be freed while
another stream still reads them. Therefore an event marks the end of the writes, every stream that reads waits for this
event on the device, and the allocator keeps the memory until all these streams are done.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


class Written:
    """Tensors on one device that are written by the work that has so far been launched on the current stream.

    Parameters
    ----------
    tensors : torch tensors on one device
        On the CPU, where Triton's interpreter runs, there is nothing to wait for.
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
        """Make the current stream wait for the writes; the tensors' memory is kept until this stream has read them.

        Does nothing while a CUDA graph is captured, because a capture cannot wait for work outside it. The caller must
        have run the same search, and waited for its end, before it captures the search.
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
    """Wait for the current stream of each device. The CPU, where Triton's interpreter runs, needs no waiting."""
    import torch

    for device in map(torch.device, devices):
        if device.type == "cuda":
            torch.cuda.current_stream(device).synchronize()


class CurrentStream:
    """The current stream of a device; while the stream does not change, reading it is ten times as fast as in torch."""

    def __init__(self, device: Any) -> None:
        self._device = device
        self._handle = -1
        self._stream: Any = None

    def get(self) -> tuple[int, Any]:
        """Return the handle of the current stream, as :meth:`Launch.repeated` needs it, and the stream itself."""
        import torch

        handle = torch._C._cuda_getCurrentRawStream(self._device.index) if self._device.type == "cuda" else -1
        if handle == -1 or handle != self._handle:
            self._stream = torch.cuda.current_stream(self._device)
            self._handle = handle
        return handle, self._stream
