"""Stored searches: the interface of their replays, and the steps that follow the replay of a first attempt."""

from __future__ import annotations

import logging
import threading
import time
import weakref
from typing import Any, ClassVar

import torch

from tonari.core.process.progress import Progress, ProgressLike
from tonari.core.results.neighbors import Neighbors
from tonari.core.trail import current, decided
from tonari.cuda.devices import on
from tonari.exact.cuda.attempts.first import DevicePoints
from tonari.exact.cuda.attempts.ladder import finish
from tonari.exact.cuda.plan import CudaPlan
from tonari.exact.cuda.replay.cache import GRAPHS
from tonari.exact.report import Report

logger = logging.getLogger("tonari")


class KeptSearch:
    """A stored search for queries of one shape and dtype, with its buffers and a lock that protects them.

    Parameters
    ----------
    prepared : DevicePoints or SpreadPoints, optional
        The points. The object has only a weak reference to them, so the caller must keep them alive while it uses the
        object. Default: each call passes points.
    device : torch.device
    nbytes : int
        Estimated memory.

    Attributes
    ----------
    own : int64 tensor of shape (m,), optional
        For each query, the row number of its own point, which is excluded from its answer.
    how : str
        The name for a replay of this search in records.
    """

    own: Any = None
    how: ClassVar[str] = "replayed as a CUDA graph"

    def __init__(self, plan: CudaPlan, prepared: Any, device: Any, nbytes: int) -> None:
        self.plan, self.nbytes = plan, nbytes
        self._lock = threading.Lock()
        self._device = device
        self._held = None if prepared is None else weakref.ref(prepared)

    def points(self, given: tuple[Any, ...]) -> Any:
        """Return the prepared points, or prepare the points of this call if there are none."""
        return self._held() if self._held else DevicePoints(given[-1], self.plan.metric, self.plan.precisions[0])

    def concluded(
        self,
        given: tuple[Any, ...],
        found: Neighbors,
        proved: Any,
        certified: int,
        started: float,
        progress: ProgressLike,
        again: int | None = None,
    ) -> Neighbors | None:
        """Search again the rows that are not certified as exact, and record the search; return None if memory is short.

        Parameters
        ----------
        given : tensors
            Queries and points; the points alone in a self-join, the queries alone if the points are prepared.
        found : Neighbors
            The answers of the first attempt; the answers of rows searched again are written to it.
        proved : uint8 tensor of shape (m,), or None
            1 for each proved row; None if all are proved.
        certified : int
            The number of rows that the first attempt proved.
        started : float
            The time at which the call began, from ``time.perf_counter``.
        progress : None, bool or callable(done, total)
        again : int, optional
            The number of additional rows that a second graph proved; None if no second graph was used.
        """
        plan, logs, record = self.plan, logger.isEnabledFor(logging.INFO), current.get()
        report = None
        before = [] if record is None else list(record.steps)
        if record is not None:
            seconds = time.perf_counter() - started
            record.tried(f"{plan.precisions[0]}, {self.how}", plan.m, certified, seconds if again is None else None)
            if again is not None:
                record.tried(f"level 1, {plan.precisions[0]}, {self.how}", plan.m - certified, again)
        certified += again or 0
        if proved is not None:
            rows = tuple(theirs.detach().contiguous() for theirs in given)
            try:
                with on(plan.devices[0]):
                    report = finish(rows[0], self.points(rows), plan, found, proved, certified, own=self.own)
            except torch.cuda.OutOfMemoryError as error:
                GRAPHS.forget()
                if record is not None:
                    record.steps[:] = before
                decided("replay", f"launched step by step instead: {error}")
                return None
        elif logs:
            report = Report(rows=plan.m)
            report.certify(plan.precisions[0], plan.m)
        self.reported(report if logs else None, started, progress)
        return found

    def reported(self, report: Report | None, started: float, progress: ProgressLike) -> None:
        """Report the progress of a finished search as complete, and log its report if there is one."""
        plan = self.plan
        if progress is not None and progress is not False:
            with Progress(progress, total=plan.m * plan.n, seconds=plan.seconds, label="neighbours") as bar:
                bar.add(bar.total)
        if report is not None:
            report.seconds = time.perf_counter() - started
            logger.info("%s", report)
