"""Repeat a search for a few queries among prepared points by its two launches alone, without planning or checks.

    launch the screen | launch the rest | allocate the next result | wait | check the state

A CUDA graph would launch both at once, but its addresses are fixed: copies of the queries and of the result would take
three more launches. Here the kernels read the caller's queries and write to new tensors, and the second kernel is
launched while the first runs. The state (flags of invalid values, and a mark for each proved row) is written to pinned
memory, which the host reads after the wait.
"""

from __future__ import annotations

import time
from typing import Any

import torch

from tonari.core.process.progress import ProgressLike
from tonari.core.results.neighbors import Neighbors
from tonari.cuda.devices import on
from tonari.cuda.streams import CurrentStream
from tonari.exact.cuda.attempts.first import DevicePoints
from tonari.exact.cuda.plan import CudaPlan
from tonari.exact.cuda.replay.cache import GRAPHS
from tonari.exact.cuda.replay.kept import KeptSearch
from tonari.exact.cuda.rows.pack import new_flags
from tonari.exact.cuda.screens.few import FLAGS, Few
from tonari.inputs.arrays.values import NO_ROW

_NO_FLAGS = [NO_ROW] * (2 * FLAGS)
_ALIGNED = 16  # kernels are compiled for queries at addresses that are multiples of 16


class FewKept(KeptSearch):
    """A search of a few queries: its buffers and its two launches, which can be run again.

    Parameters
    ----------
    queries : tensor of shape (m, d)
    plan : CudaPlan
        A plan with ``few``.
    prepared : DevicePoints
        See :class:`KeptSearch`. The launches use its tensors, so this object must not outlive it.

    Raises
    ------
    RuntimeError, MemoryError
        There is not enough memory.
    """

    how = "two launches with kept buffers"

    def __init__(self, queries: Any, plan: CudaPlan, prepared: DevicePoints, *, nbytes: int) -> None:
        super().__init__(plan, prepared, queries.device, nbytes)
        on_card = self._device.type == "cuda"
        # Buffers created in inference mode could not be written to in any other mode.
        with torch.inference_mode(False), torch.no_grad():
            state = torch.empty(2 * FLAGS + plan.m, dtype=torch.int64, pin_memory=on_card)
            self._state = state.numpy()  # an array's tolist() is faster than a tensor's
            self._flags = new_flags(self._device)
            self._few = Few(torch.zeros_like(queries), prepared, plan, self._flags, state)
            self._few.screen()  # compiles the kernels if necessary
            self._few.finish()
            self._screen = self._few.screen.repeated("rows_ptr")
            self._finish = self._few.finish.repeated("distances_ptr", "indices_ptr")
            if on_card:  # the buffers must be complete, because the next call may use another stream
                torch.cuda.current_stream(self._device).synchronize()
        self._one_of_several = on_card and torch.cuda.device_count() > 1
        self._current = CurrentStream(self._device)
        # The stream of the last call, and empty tensors for the next result, allocated on that stream.
        self._spare: tuple[Any, Neighbors] | None = None

    def answer(self, given: tuple[Any, ...], progress: ProgressLike = None) -> Neighbors | None:
        if self._one_of_several and torch.cuda.current_device() != self._device.index:
            with on(self._device):  # Triton launches on the current device
                return self._answer(given[0], progress)
        return self._answer(given[0], progress)

    def _answer(self, queries: Any, progress: ProgressLike) -> Neighbors | None:
        started, few = time.perf_counter(), self._few
        if not queries.is_contiguous() or queries.data_ptr() % _ALIGNED:
            queries = queries.detach().clone(memory_format=torch.contiguous_format)
        # The lock protects the buffers: when it is released, no work on the device uses them any more.
        with self._lock:
            handle, stream = self._current.get()
            self._screen(handle, queries)
            try:
                spare, self._spare = self._spare, None
                found = self._empty() if spare is None or spare[0] != stream else spare[1]
                self._finish(handle, *found)
                self._spare = stream, self._empty()  # allocated while the device is busy
            except torch.cuda.OutOfMemoryError:
                GRAPHS.forget()
                return None
            finally:
                stream.synchronize()
            state = self._state.tolist()
            if state[: 2 * FLAGS] != _NO_FLAGS:
                self._flags.fill_(NO_ROW)
                stream.synchronize()
                return None
            certified = sum(state[2 * FLAGS :])
            proved = None
            if certified < self.plan.m:
                proved = few.proved.clone()
                stream.synchronize()
        return self.concluded((queries,), found, proved, certified, started, progress)

    def _empty(self) -> Neighbors:
        """Return empty tensors for a result, allocated so that the caller can use them in any torch mode."""
        with torch.inference_mode(False):
            like = self._few.found
            return Neighbors(torch.empty_like(like.distances), torch.empty_like(like.indices))
