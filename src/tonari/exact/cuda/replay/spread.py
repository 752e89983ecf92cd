"""Replay a search among prepared points on several devices: one CUDA graph for each, and one that joins the lists.

    copy the queries to each device | replay each part | copy its lists to the first device | replay the join
    copy the output | wait | check the states

Without graphs, launching the search of one part takes the host more than a millisecond, during which the next device is
idle, and launching a merge takes as long as a device needs to refine a part. Launching a graph takes some 10 µs. If a
device leaves rows of its part unproved (not certified as exact), they are searched again without a graph, and the lists
are joined once more. If a value is invalid, the graphs give no answer, and the search is run without them, which raises
the error.
"""

from __future__ import annotations

import contextlib
import functools
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from tonari.core import trail
from tonari.core.process.progress import ProgressLike
from tonari.core.results.neighbors import Neighbors
from tonari.core.trail import decided
from tonari.cuda.device_threads import a_thread_each, side_by_side
from tonari.cuda.devices import on, to_device
from tonari.cuda.recorded import check_room, record
from tonari.cuda.streams import synchronize
from tonari.exact.cuda.attempts.first import DevicePoints
from tonari.exact.cuda.attempts.ladder import attempt, finish
from tonari.exact.cuda.plan import CudaPlan
from tonari.exact.cuda.replay.cache import GRAPHS
from tonari.exact.cuda.replay.kept import KeptSearch
from tonari.exact.cuda.routes.multi_gpu import PARTS, SpreadPoints, join, merged_name, parts_of
from tonari.exact.report import Report
from tonari.inputs.arrays.values import NO_ROW

_NO_FLAGS = [NO_ROW] * 6


class _Part:
    """The search of one device's part, captured as a CUDA graph.

    Parameters
    ----------
    queries : tensor of shape (m, d)
        The queries of all parts.
    rows : slice
        The queries of this part.
    plan : CudaPlan
        The plan of this part.
    points : callable() -> DevicePoints
        The device's prepared points, which must exist while the graph is used.
    nbytes : int
        Estimated memory of the graph.

    Attributes
    ----------
    found, proved : Neighbors, and uint8 tensor of shape (rows,)
        Written by each replay.
    """

    def __init__(
        self, queries: Any, rows: slice, plan: CudaPlan, points: Callable[[], DevicePoints], nbytes: int
    ) -> None:
        self.rows, self.plan, self.points = rows, plan, points
        self.device = torch.device(plan.devices[0])
        self.queries = torch.empty(queries[rows].shape, dtype=queries.dtype, device=self.device)
        state = torch.empty(7, dtype=torch.int64, pin_memory=self.device.type == "cuda")
        self._state = state.numpy()  # an array's tolist() is faster than a tensor's

        def search() -> tuple[Neighbors, Any]:
            found, proved, here = attempt(self.queries, self.points(), plan)
            state.copy_(here, non_blocking=True)
            return found, proved

        with on(self.device):
            self.queries.copy_(queries[rows])
            search()  # compiles kernels, which is impossible during a capture
            check_room(self.device, nbytes)
            self._graph, (self.found, self.proved) = record(search, self.device)

    def replay(self) -> None:
        """Launch the graph, which searches for the queries that its input buffer contains."""
        with on(self.device):
            self._graph.replay()

    def state(self) -> tuple[list[int], int]:
        """Return the flags of points and queries, and the number of proved rows; the device must have finished."""
        *flags, certified = self._state.tolist()
        return flags, int(certified)

    def finish(self, certified: int) -> Report:
        """Search the rows that the graph has not proved, and write their answers to `found`.

        `certified` is the number of proved rows."""
        return finish(self.queries, self.points(), self.plan, self.found, self.proved, certified)


class SpreadSearch(KeptSearch):
    """A captured search of queries among points that are prepared on several devices.

    Parameters
    ----------
    queries : tensor of shape (m, d), or array in host memory
    plan : CudaPlan
        The plan of the whole search.
    prepared : SpreadPoints
        See :class:`KeptSearch`.
    nbytes : int
        Estimated memory of the device that needs most.

    Raises
    ------
    RuntimeError, MemoryError
        The search cannot be captured, or there is not enough memory.
    """

    how = "replayed as a CUDA graph on each device"

    def __init__(self, queries: Any, plan: CudaPlan, prepared: SpreadPoints, *, nbytes: int) -> None:
        super().__init__(plan, prepared, torch.device(plan.devices[0]), nbytes)
        # Buffers created in inference mode could not be written to in any other mode.
        with torch.inference_mode(False), torch.no_grad():
            rows_there = self._there(queries)
            self._parts = [
                _Part(rows_there, rows, part, functools.partial(self._points_of, at), nbytes)
                for at, (rows, part) in enumerate(parts_of(plan, prepared, len(queries)))
            ]
            with on(self._device):
                self._lists = [
                    Neighbors(*(torch.empty_like(each, device=self._device) for each in part.found))
                    for part in self._parts
                ]
                bounds = list(prepared.bounds)

                def joined() -> Neighbors:
                    # `join` may overwrite the first list, which is needed once more if unproved rows are searched
                    # again.
                    first, *others = self._lists
                    copy = Neighbors(*(each.clone() for each in first))
                    return join([copy, *others], plan, bounds, self._device, len(queries))

                self._bring()
                joined()
                check_room(self._device, nbytes)
                self._graph, self._found = record(joined, self._device)

    def answer(self, given: tuple[Any, ...], progress: ProgressLike = None) -> Neighbors | None:
        started, queries = time.perf_counter(), given[0]
        record, report = trail.current.get(), Report(rows=self.plan.m)
        before = [] if record is None else list(record.steps)
        # The lock protects the buffers: when it is released, no work on the devices uses them any more.
        with self._lock:
            try:
                rows = self._there(queries)
                found = self._first_attempts(rows)
                states = [part.state() for part in self._parts]
                if any(flags != _NO_FLAGS for flags, _ in states):
                    return None
                proved = [certified for _, certified in states]
                self._tried(record, proved, started)
                left = [at for at, part in enumerate(self._parts) if proved[at] < part.plan.m]
                if left:
                    found = self._finished(rows.device, left, proved, report)
                report.certify(self.plan.precisions[0], sum(proved[at] for at in range(len(proved)) if at not in left))
            except torch.cuda.OutOfMemoryError as error:
                GRAPHS.forget()
                if record is not None:
                    record.steps[:] = before
                decided("replay", f"launched step by step instead: {error}")
                return None
            finally:
                synchronize(self.plan.devices)
        if record is not None and self.plan.shard == "points":
            record.tried(merged_name(len(self._parts)), self.plan.m, self.plan.m, time.perf_counter() - started)
        self.reported(report, started, progress)
        host = isinstance(queries, np.ndarray)
        return Neighbors(*(each.cpu().numpy() for each in found)) if host else found

    def _there(self, queries: Any) -> Any:
        """Return queries as a tensor on their device or, if they are in host memory, on the plan's first device."""
        if isinstance(queries, np.ndarray):
            return to_device(np.ascontiguousarray(queries), self._device)
        return queries.detach() if queries.requires_grad else queries

    def _points_of(self, part: int) -> DevicePoints:
        """Return the prepared points of a part, which must still exist."""
        prepared: Any = self._held()  # type: ignore[misc]
        points: DevicePoints = prepared.parts[part]
        return points

    def _first_attempts(self, queries: Any) -> Neighbors:
        """Launch the graphs of all parts and of the join, and wait; return the answer, whose rows may be unproved."""
        for part in self._parts:  # launched now, while the part's device is otherwise idle
            part.queries.copy_(queries[part.rows], non_blocking=True)
        for part in self._parts:
            part.replay()
        found = self._joined(queries.device)
        synchronize(self.plan.devices)
        return found

    def _bring(self) -> None:
        """Copy the lists of all parts to the first device."""
        for ours, part in zip(self._lists, self._parts, strict=True):
            for here, there in zip(ours, part.found, strict=True):
                here.copy_(there, non_blocking=True)

    def _joined(self, device: Any) -> Neighbors:
        """Replay the graph that joins the lists of all parts; return new tensors on `device`."""
        self._bring()
        with on(self._device):
            self._graph.replay()
        return Neighbors(*(each.to(device, copy=True) for each in self._found))

    def _finished(self, device: Any, left: list[int], proved: list[int], report: Report) -> Neighbors:
        """Search the unproved rows of all parts again; return the joined lists."""
        devices = [self.plan.devices[at] for at in left]

        def again(which: int) -> Report:
            with on(devices[which]):
                return self._parts[left[which]].finish(proved[left[which]])

        with self._as_part(0):
            for done in side_by_side(a_thread_each(devices), devices, len(left), again):
                report.include(done)
        return self._joined(device)

    def _tried(self, record: trail.Record | None, proved: list[int], started: float) -> None:
        """Record the first attempts of all parts as one step of the search."""
        if record is None:
            return
        rows, seconds = sum(part.plan.m for part in self._parts), time.perf_counter() - started
        with self._as_part(rows):
            of_parts = trail.current.get()
            assert of_parts is not None
            of_parts.tried(f"{self.plan.precisions[0]}, {self.how}", rows, sum(proved), seconds)

    def _as_part(self, rows: int) -> Any:
        """Return a context that records searches of parts; if the points are divided, each part has all queries."""
        return trail.part(PARTS, rows) if self.plan.shard == "points" else contextlib.nullcontext()
