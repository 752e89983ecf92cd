"""Searches on a GPU by a plan with overrides, through the plan's route, for tests of exact search on CUDA.

Without a GPU, Triton's interpreter runs the kernels on the CPU, so shapes are tiny.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.helpers import checks, plans
from tests.helpers.checks import Array, assert_same_neighbors
from tests.helpers.devices import HAS_CUDA, HAS_TORCH
from tonari.core.results.neighbors import Neighbors
from tonari.inputs import held, name_of_dtype
from tonari.metrics import METRICS
from tonari.metrics.reference import brute

if HAS_TORCH:
    import torch

    from tonari.exact.cuda import dispatch as run
    from tonari.exact.cuda.plan import CudaPlan
    from tonari.exact.report import Report

GB = 10**9
DEVICE = "cuda:0" if HAS_CUDA else "cpu"


def rows_of(n: int, d: int, dtype: str = "float32", metric: str = "euclidean", seed: int = 0) -> Array:
    """Make random rows of a dtype that a metric accepts."""
    rows = checks.gaussian(n, d, seed)
    if dtype in ("uint8", "int8"):
        rows = (30 * rows).clip(-120, 120)
    return (np.abs(rows) if dtype == "uint8" or METRICS[metric].nonnegative else rows).astype(dtype)


def on_host(found: Neighbors) -> Neighbors:
    """Return neighbours of tensors or arrays as NumPy arrays."""
    return Neighbors(*map(numpy_of, found))


def types_and_places(queries: Any, points: Any) -> dict[str, Any]:
    """Return the dtypes and devices of arrays or tensors, which a plan needs in addition to their shapes."""
    return {
        "dtype": name_of_dtype(points),
        "query_dtype": name_of_dtype(queries),
        "host_points": isinstance(points, np.ndarray),
        "host_queries": isinstance(queries, np.ndarray),
    }


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
) -> CudaPlan:
    """Return a plan of a search among arrays in host memory, or among tensors."""
    return plans.exact_cuda(
        len(points),
        len(queries),
        points.shape[1],
        k,
        metric=metric,
        devices=devices,
        memory=memory,
        self_join=self_join,
        **types_and_places(queries, points),
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
    """Search by a plan, and return the answer and the report. For a self-join pass the same rows twice."""
    queries, points = (held(rows) if isinstance(rows, np.ndarray) else rows for rows in (queries, points))
    plan = plan_of(queries, points, k, metric, self_join=self_join, **choices)
    route = run.ROUTES["multi_gpu" if len(plan.devices) > 1 else plan.route]
    with run.on(plan.devices[0]):
        prepared = route.prepare(points, plan, None)
        found, report = route.search(queries, prepared, plan, self_join=self_join, progress=progress)
    return on_host(found), report


def check(queries: Any, points: Any, k: int, metric: str = "euclidean", **choices: Any) -> Report:
    """Compare a search with the reference, bit by bit, and return its report."""
    found, report = search(queries, points, k, metric, **choices)
    q, x = map(numpy_of, (queries, points))
    own = np.arange(len(q)) if choices.get("self_join") else None
    assert_same_neighbors(found, brute(q, x, k, metric, self_ids=own), metric=metric)
    assert report.rows == len(q)
    return report


class Stop:
    """A progress callback that raises KeyboardInterrupt at its first report."""

    def __call__(self, done: int, total: int) -> None:
        raise KeyboardInterrupt


def check_stops(**arguments: Any) -> None:
    """Check that a search that is interrupted at its first report ends its threads, and that the next search is
    right.
    """
    import threading

    before = set(threading.enumerate())
    with pytest.raises(KeyboardInterrupt):
        search(**arguments, progress=Stop())
    assert set(threading.enumerate()) == before
    check(**arguments)


def tensors(device: str, *arrays: Array) -> list[Any]:
    """Return arrays as tensors on a device."""
    return [tensor_of(array).to(device) for array in arrays]


def tensor_of(array: Array) -> Any:
    """Return an array as a tensor in host memory; bfloat16 is converted via float32, without loss."""
    if array.dtype == "bfloat16":
        return torch.from_numpy(array.astype(np.float32)).bfloat16()
    return torch.from_numpy(array)


def numpy_of(x: Any) -> Array:
    """Return an array or a tensor on any device as a NumPy array; bfloat16 becomes the dtype of ml_dtypes."""
    if isinstance(x, np.ndarray):
        return x
    return x.cpu().float().numpy().astype("bfloat16") if x.dtype == torch.bfloat16 else x.cpu().numpy()


def clusters_for_each_precision() -> tuple[Array, Array]:
    """Make queries and points: 280 easy ones, 280 that only the second precision level distinguishes, 280 equal ones.

    A retry of width 1 refines 16 groups of 8.
    """
    easy, close, same = (np.zeros((280, 4), np.float32) for _ in range(3))
    easy[:] = checks.gaussian(280, 4)
    close[:, 0] = 8
    close[:, 1] = 1.5e-3 * np.arange(280)  # below the errors of float16 at 8, far above those of two of them
    same[:] = -8
    return np.stack([part[140] + 1e-4 for part in (easy, close, same)]), np.vstack([easy, close, same])


OUT_OF_MEMORY = "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has 79 GiB of which 1 GiB is free. Set this."


CHILD = """
import threading, time
import numpy as np, torch, tonari
from tonari.metrics.reference import brute
points = {points}
small = np.random.default_rng(1).random((300, 5), np.float32)
tonari.search(small, small, 4, device="cuda")
started = threading.Event()
def progress(done, total):
    if not started.is_set():
        started.set()
        print("started", flush=True)
try:
    tonari.search(points, points, {k}, progress=progress, {arguments})
except KeyboardInterrupt:
    print("stopped", time.time(), flush=True)
else:
    print("finished", flush=True)
print("threads", threading.active_count(), flush=True)
found, truth = tonari.search(small, small, 4, device="cuda"), brute(small, small, 4)
print("right", (found.indices == truth.indices).all() and (found.distances == truth.distances).all(), flush=True)
"""


def interrupt(points: str, k: int, arguments: str) -> None:
    """Press Ctrl-C in a process with a long search: it reacts within a second, and can search again."""
    assert checks.check_interrupt(CHILD.format(points=points, k=k, arguments=arguments))["right"] == "True"
