"""The route on which points and queries lie on one device."""

from __future__ import annotations

from typing import Any

import torch

from tonari.exact.gpu.engine import DevicePoints, search_on_device
from tonari.exact.gpu.places import to_device
from tonari.exact.report import Report
from tonari.planning_gpu import GpuPlan
from tonari.progress import Progress, ProgressLike
from tonari.results import Neighbors


def prepare_resident(points: Any, plan: GpuPlan, progress: ProgressLike = None) -> DevicePoints:
    """Points on the plan's device, packed for the first rung; nothing waits for the device."""
    return DevicePoints(to_device(points, plan.devices[0]), plan.metric, plan.ladder[0])


def search_resident(
    queries: Any, prepared: DevicePoints, plan: GpuPlan, *, self_join: bool = False, progress: ProgressLike = None
) -> tuple[Neighbors, Report]:
    """Answer queries against prepared points; see :mod:`tonari.exact.gpu.run`."""
    points = prepared.points
    rows = points if self_join else to_device(queries, plan.devices[0])
    own = torch.arange(len(rows), device=rows.device) if self_join else None
    with Progress(progress, total=plan.m * plan.n, seconds=plan.seconds, label="neighbours") as bar:
        return search_on_device(rows, prepared, plan, own=own, bar=bar)
