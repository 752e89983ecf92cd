"""What the tests of the engine on a GPU share: a search by a plan with overrides, taken through the plan's route.

Where there is no GPU the CPU plays the device and Triton's interpreter runs the kernels: shapes have to be tiny there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import checks
import numpy as np
import pytest
from checks import Array, assert_same_neighbors
from select_checks import HAS_TORCH

from tonari.metrics import METRICS
from tonari.reference import brute
from tonari.results import Neighbors

if HAS_TORCH:
    import torch

    from tonari.exact.gpu import run
    from tonari.exact.report import Report
    from tonari.planning_gpu import GpuPlan, plan_on_gpu

GB = 10**9
DTYPES = ("float32", "float16", "float64", "uint8", "int8")


def rows_of(n: int, d: int, dtype: str = "float32", metric: str = "euclidean", seed: int = 0) -> Array:
    """Random rows that a metric takes, of a dtype."""
    rows = checks.gaussian(n, d, seed)
    if dtype in ("uint8", "int8"):
        rows = (30 * rows).clip(-120, 120)
    return (np.abs(rows) if dtype == "uint8" or METRICS[metric].nonnegative else rows).astype(dtype)


def on_host(found: Neighbors) -> Neighbors:
    """Neighbours of tensors or arrays as NumPy arrays."""
    return Neighbors(*(part if isinstance(part, np.ndarray) else part.cpu().numpy() for part in found))


def plan_of(
    queries: Any,
    points: Any,
    k: int,
    metric: str = "euclidean",
    *,
    devices: tuple[str, ...] = ("cpu",),
    self_join: bool = False,
    memory: int | None = None,
    **overrides: Any,
) -> GpuPlan:
    """A plan for arrays in host memory or tensors."""
    return plan_on_gpu(
        len(points),
        len(queries),
        points.shape[1],
        k,
        dtype=str(points.dtype).removeprefix("torch."),
        query_dtype=str(queries.dtype).removeprefix("torch."),
        metric=metric,
        devices=devices,
        memory=memory,
        self_join=self_join,
        host_points=isinstance(points, np.ndarray),
        host_queries=isinstance(queries, np.ndarray),
        free_bytes=8 * GB,
        **overrides,
    )


def search(
    queries: Any,
    points: Any,
    k: int,
    metric: str = "euclidean",
    *,
    self_join: bool = False,
    progress: Callable[[int, int], object] | None = None,
    **choices: Any,
) -> tuple[Neighbors, Report]:
    """Search as planned, and what the run did. For a self-join pass the same rows twice."""
    plan = plan_of(queries, points, k, metric, self_join=self_join, **choices)
    route = run.ROUTES["several" if len(plan.devices) > 1 else plan.route]
    with run.on(plan.devices[0]):
        prepared = route.prepare(points, plan, None)
        found, report = route.search(queries, prepared, plan, self_join=self_join, progress=progress)
    return on_host(found), report


def check(queries: Any, points: Any, k: int, metric: str = "euclidean", **choices: Any) -> Report:
    """Compare a search with the reference, bit by bit; what the run did."""
    found, report = search(queries, points, k, metric, **choices)
    q, x = (part if isinstance(part, np.ndarray) else part.cpu().numpy() for part in (queries, points))
    own = np.arange(len(q)) if choices.get("self_join") else None
    assert_same_neighbors(found, brute(q, x, k, metric, self_ids=own), metric=metric)
    assert report.rows == len(q)
    return report


class Stop:
    """A progress callback that presses Ctrl-C at the first report."""

    def __call__(self, done: int, total: int) -> None:
        raise KeyboardInterrupt


def check_stops(**arguments: Any) -> None:
    """A search that is stopped at its first report ends its threads, and the next one is right."""
    import threading

    before = set(threading.enumerate())
    with pytest.raises(KeyboardInterrupt):
        search(**arguments, progress=Stop())
    assert set(threading.enumerate()) == before
    check(**arguments)


def tensors(device: str, *arrays: Array) -> list[Any]:
    """Arrays as tensors on a device."""
    return [torch.from_numpy(array).to(device) for array in arrays]
