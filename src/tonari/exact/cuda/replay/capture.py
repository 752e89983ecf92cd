"""Capture the kernels of a small search as a CUDA graph, which is replayed on new values in one launch.

A search of a few queries among prepared points is stored without a graph (replay/few.py), and a search among points on
several devices as one graph per device (replay/spread.py).

A search of 1,000 queries among 10,000 points takes 0.1 ms on an H100, but its launches from Python take ten times as
long. A graph has fixed addresses, so the input is copied to the graph's own buffers, and the output is copied from
them:

    copy the input | replay | copy the output | wait | check the state

The state (flags of the rows, and the number of proved rows) is copied to pinned memory by the graph itself. The output
is copied before the state is known, so that the host waits for the device only once. If a value is invalid, the graph
gives no answer, and the search is run without it, which raises the error.

Unproved rows, whose answers are not certified as exact, are searched again step by step. If a search of these shapes
leaves a few rows unproved for the second time, the retry is captured as another graph, for a fixed number of rows. The
unproved rows come first; proved rows only fill up the number and keep their answers:

    replay the second graph | copy the output | wait | check the state
"""

from __future__ import annotations

import threading
import time
from typing import Any

import torch

from tonari.core.process.garbage import collection_off
from tonari.core.process.progress import ProgressLike
from tonari.core.results.neighbors import Neighbors
from tonari.core.trail import decided
from tonari.costs.model import brute_pair_seconds
from tonari.cuda.devices import on
from tonari.cuda.recorded import check_room, record
from tonari.exact.cuda import tuning
from tonari.exact.cuda.attempts.first import DevicePoints
from tonari.exact.cuda.attempts.ladder import attempt, attempt_again
from tonari.exact.cuda.plan import CudaPlan
from tonari.exact.cuda.refine.group_lists import listed_room
from tonari.exact.cuda.replay.cache import GRAPHS, Graph, key_of, key_on
from tonari.exact.cuda.replay.few import FewKept
from tonari.exact.cuda.replay.kept import KeptSearch
from tonari.exact.cuda.replay.spread import SpreadSearch
from tonari.exact.cuda.routes.multi_gpu import SpreadPoints, parts_of
from tonari.exact.cuda.rows.groups import LEAST_GROUP, group_count
from tonari.exact.cuda.rows.pack import packed_row_bytes
from tonari.exact.cuda.screens.all_minima import slots_of
from tonari.exact.cuda.screens.few import few_row_bytes
from tonari.exact.cuda.screens.screener import first_sample
from tonari.exact.cuda.screens.widths import wider
from tonari.inputs import name_of_dtype
from tonari.inputs.arrays.values import NO_ROW
from tonari.select.cuda.ordering.order import ENTRY_BYTES, MERGE_BYTES

POOL_BYTES = 1 << 25  # bytes by which a graph's memory pool may exceed its need: torch allocates blocks of 2 and 20 MiB

_capturing = threading.Lock()


def capture_if_due(
    queries: Any, points: Any, plan: CudaPlan, *, self_join: bool = False, progress: ProgressLike = None
) -> Neighbors | None:
    """Capture a small search at its second run, as a CUDA graph or as two launches, and answer it by a replay.

    Parameters
    ----------
    queries : tensor of shape (m, d), or, for SpreadPoints, an array in host memory
    points : tensor of shape (n, d), DevicePoints or SpreadPoints
    plan : CudaPlan
    self_join : bool
        The queries are the points, and no point is its own neighbour.
    progress : None, bool or callable(done, total)

    Returns
    -------
    Neighbors of tensors of shape (m, k), or None
        None at the first run of a search, if the capture fails, or if the graph cannot answer.
    """
    if not plan.cuda_graph:
        return None
    prepared = points if isinstance(points, DevicePoints | SpreadPoints) else None
    if len(plan.devices) > 1 and (prepared is None or self_join):
        return None
    if prepared is not None:
        key = key_on(prepared, queries, plan.k)
    else:
        key = key_of(queries, points, plan.k, plan.metric, self_join=self_join)
    tensors = (queries,) if prepared is not None else (points,) if self_join else (queries, points)
    if isinstance(prepared, SpreadPoints):
        nbytes, most = _held_on_each(plan, queries, prepared), tuning.HELD_BYTES
        seconds = plan.m * plan.n * brute_pair_seconds(plan.d) / len(plan.devices)  # without the time to copy points
    else:
        nbytes, most = _held_bytes(plan, tensors, prepared is not None), tuning.LARGEST_BYTES
        seconds = plan.seconds
    if len(plan.devices) == 1 and str(queries.device) != plan.devices[0]:
        return None  # the queries are on a device that the prepared points do not use
    too_large = nbytes > most or seconds > tuning.LONGEST_SECONDS
    if key is None or too_large or not GRAPHS.claim(key):
        return None
    # If the garbage collector destroyed another graph during the capture, the capture would fail.
    with _capturing, on(plan.devices[0]), collection_off():
        GRAPHS.make_room(nbytes)
        try:
            if isinstance(prepared, SpreadPoints):
                graph: Graph = SpreadSearch(queries, plan, prepared, nbytes=nbytes)
            elif plan.few and prepared is not None and not self_join:
                graph = FewKept(queries, plan, prepared, nbytes=nbytes)
            else:
                graph = CapturedSearch(tensors, plan, prepared, self_join=self_join, nbytes=nbytes)
        except (RuntimeError, MemoryError) as error:  # torch's out-of-memory error is a RuntimeError
            decided("replay", f"searches like this one are launched step by step: {error}")
            return None
        GRAPHS.put(key, graph)
    return graph.answer(tensors, progress)


def _held_bytes(plan: CudaPlan, given: tuple[Any, ...], prepared: bool) -> int:
    """Estimate the memory of a search's CUDA graph, and of a second graph for retries, which shares it.

    A graph's memory contains its input, packed points, the members of groups with their keys, and either all minima and
    their selection or lists of groups below a threshold. It does not contain the data of an Index, or memory for
    retries outside the graph.
    """
    if plan.few and prepared:
        return plan.m * few_row_bytes(plan.n, plan.d)
    sample = first_sample(plan, plan.n)
    if sample is None:
        minima, members = 8 * group_count(plan.n, plan.group), 32 * plan.width * plan.group
    else:
        length = packed_row_bytes(plan.d, plan.precisions[0])
        slots = slots_of(plan.m, plan.n, length, sample.capacity, given[0].device)
        minima = 8 * slots + 8 * group_count(-(-plan.n // sample.stride), plan.group)
        members = 32 * listed_room(plan.width) * LEAST_GROUP
    rows = plan.m * (minima + members + 16 * (plan.d + plan.k))
    # The second graph uses the memory of the first, which is enough unless most rows are searched again.
    groups = group_count(plan.n, plan.group)
    again = 8 * groups + 32 * min(groups, wider(plan.d) * plan.width) * plan.group + 16 * (plan.d + plan.k)
    rows = max(rows, min(plan.m, tuning.ROWS_AGAIN) * again)
    inputs = sum(int(each.numel() * each.element_size()) for each in given)
    return rows + inputs + POOL_BYTES + (0 if prepared else plan.packed_bytes)


def _held_on_each(plan: CudaPlan, queries: Any, prepared: SpreadPoints) -> int:
    """Estimate the memory of a search's CUDA graphs on the device that needs the most."""
    parts = parts_of(plan, prepared, len(queries))
    dtype = getattr(torch, name_of_dtype(queries))
    row = torch.empty((1, plan.d), dtype=dtype, device=plan.devices[0])
    first = max(_held_bytes(part, (row.expand(part.m, plan.d),), True) for _, part in parts)
    lists = plan.m * plan.k * 16 * (len(parts) + 2)  # bytes of the parts' lists, and of the joined list
    return first + lists + min(MERGE_BYTES, 2 * plan.m * plan.k * ENTRY_BYTES)


class CapturedSearch(KeptSearch):
    """A search captured as a CUDA graph: its first attempt, and the packing of the points unless they are prepared.

    Parameters
    ----------
    given : tensors
        The input that changes between calls: queries and points; the points alone in a self-join, the queries alone if
        the points are prepared.
    plan : CudaPlan
    prepared : DevicePoints, optional
        The graph keeps only a weak reference; the caller must keep them alive while it uses the graph.
    self_join : bool
    nbytes : int
        Estimated memory.

    Raises
    ------
    RuntimeError, MemoryError
        The search cannot be captured, or there is not enough memory.
    """

    def __init__(
        self, given: tuple[Any, ...], plan: CudaPlan, prepared: DevicePoints | None, *, self_join: bool, nbytes: int
    ) -> None:
        super().__init__(plan, prepared, given[0].device, nbytes)
        # Buffers created in inference mode could not be written to in any other mode.
        with torch.inference_mode(False), torch.no_grad():
            self._given = tuple(torch.empty(rows.shape, dtype=rows.dtype, device=self._device) for rows in given)
            own = torch.arange(plan.m, device=self._device) if self_join else None
            state = torch.empty(7, dtype=torch.int64, pin_memory=self._device.type == "cuda")
            self._pinned, self._state = state, state.numpy()  # an array's tolist() is faster than a tensor's

            def search() -> tuple[Neighbors, Any]:
                found, proved, here = attempt(self._given[0], self.points(self._given), plan, own=own)
                state.copy_(here, non_blocking=True)
                return found, proved

            for ours, theirs in zip(self._given, given, strict=True):
                ours.copy_(theirs)
            search()  # compiles kernels, which is impossible during a capture
            check_room(self._device, nbytes)
            self._graph, (self._found, self._proved) = record(search, self._device)
            self.own = own
        self._left_few = 0  # counts searches whose first attempt left a few rows unproved
        self._second: Any = None  # the CUDA graph that retries a few unproved rows

    def answer(self, given: tuple[Any, ...], progress: ProgressLike = None) -> Neighbors | None:
        """Search with new values of the same shapes and dtypes, with any strides, on the current stream.

        Returns
        -------
        Neighbors of new tensors, or None
            None if a value is invalid, or if there is no memory for the result.
        """
        started = time.perf_counter()
        # The lock protects the buffers: when it is released, no work on the device uses them any more.
        with self._lock:
            stream = torch.cuda.current_stream(self._device)
            try:
                for ours, theirs in zip(self._given, given, strict=True):
                    ours.copy_(theirs.detach() if theirs.requires_grad else theirs)
                self._graph.replay()
                found = self._answer()
            except torch.cuda.OutOfMemoryError:
                GRAPHS.forget()
                return None
            finally:
                stream.synchronize()
            *flags, certified = self._state.tolist()
            if flags != [NO_ROW] * 6:
                return None
            again = proved = None
            if certified < self.plan.m:
                try:
                    found, again = self._searched_again(found, certified)
                    if certified + (again or 0) < self.plan.m:
                        proved = self._proved.clone()
                except torch.cuda.OutOfMemoryError:
                    GRAPHS.forget()
                    return None
                finally:
                    stream.synchronize()
        return self.concluded(given, found, proved, certified, started, progress, again)

    def _answer(self) -> Neighbors:
        """Return a copy of the neighbours in the graph's output buffers."""
        return Neighbors(self._found.distances.clone(), self._found.indices.clone())

    def _searched_again(self, found: Neighbors, certified: int) -> tuple[Neighbors, int | None]:
        """Retry unproved rows if they are few and an earlier search left some, too.

        Returns the answer, and the number of rows that the retry proved, or None without a retry. The retry may have to
        compile kernels, which is not worth the time for a single search.
        """
        if self.plan.m - certified > tuning.ROWS_AGAIN:
            return found, None
        self._left_few += 1
        if self._left_few == 2:
            self._begin_second()
        elif self._second is not None:
            self._second.replay()
        else:
            return found, None
        found = self._answer()
        torch.cuda.current_stream(self._device).synchronize()
        again = int(self._state[-1]) - certified
        if not again:  # the retry proved no row, and is unlikely to prove any in similar data
            self._second = None
        return found, again

    def _begin_second(self) -> None:
        """Capture the retry of ROWS_AGAIN rows as a second CUDA graph."""
        plan, tensors = self.plan, self._given

        def search() -> tuple[Neighbors, Any]:
            points, both = self.points(tensors), (self._found, self._proved)
            here = attempt_again(tensors[0], points, plan, *both, tuning.ROWS_AGAIN, own=self.own)
            self._pinned.copy_(here, non_blocking=True)
            return both

        with _capturing, on(plan.devices[0]), collection_off(), torch.inference_mode(False), torch.no_grad():
            search()
            try:
                check_room(self._device, POOL_BYTES)  # the second graph uses the memory of the first one
                self._second = record(search, self._device, self._graph)[0]
            except (RuntimeError, MemoryError) as error:
                decided("replay", f"rows that are left are searched step by step: {error}")
