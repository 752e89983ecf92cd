"""The place where a call runs: the CPU, or CUDA devices (place_cuda.py, imported only there), with one interface."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from tonari import inputs
from tonari.core._native import exact_values
from tonari.core.plan import Plan
from tonari.core.process.workers import default_threads
from tonari.core.results.neighbors import Neighbors, index_dtype
from tonari.methods import tuning
from tonari.methods.places.value_range import check_range
from tonari.metrics import Metric


class Place(Protocol):
    """The interface of a place where a call runs.

    In its methods, "rows" are checked arrays: NumPy arrays in host memory, or tensors on CUDA.

    Attributes
    ----------
    devices : tuple of str
        "cuda:0" and so on; empty on the CPU.
    device : str
        "cpu" or "cuda".
    may_take_fewer : bool
        As in :class:`tonari.core.problem.Problem`.
    """

    devices: tuple[str, ...]
    may_take_fewer: bool
    device: str

    def rows(self, x: Any, name: str, metric: Metric, threads: int | None = None) -> Any:
        """Check an array, and return it as rows that the place and the metric accept.

        On the CPU, `threads` threads check its values; by default the number depends on the work.
        """

    def threads_to_prepare(self, asked: int | None, n: int) -> int | None:
        """Return the number of threads that prepare n points: as requested or, by default, by the amount of work.

        On CUDA, the requested number is returned, and refused later.
        """

    def check_plan(self, plan: Plan) -> None:
        """Raise ValueError for a plan that was made for another place."""

    def no_others(self, rows: Any, metric: Metric) -> Neighbors:
        """Check the values of rows, and return an empty neighbour list for each row, on the rows' device."""

    def with_self(self, found: Neighbors, rows: Any, metric: Metric) -> Neighbors:
        """Insert each point of a self-join at the beginning of its own neighbour list, on the rows' device."""

    def on(self, devices: tuple[str, ...]) -> Place:
        """Return a copy of this place with fewer devices; a search then runs on all of them."""

    def there(self, x: Any) -> Any:
        """Convert an array to the form that methods read: a NumPy array, or a tensor on `devices[0]`."""


class CpuPlace:
    """The CPU as the place where a call runs."""

    devices: tuple[str, ...] = ()
    device = "cpu"
    may_take_fewer = False

    def rows(self, x: Any, name: str, metric: Metric, threads: int | None = None) -> npt.NDArray[Any]:
        if metric.bits:
            return inputs.as_bits(x, name)
        if metric.missing:
            rows = inputs.as_rows(x, name, check_values=False)
            inputs.check_gaps(rows, name)
            return rows
        rows = inputs.as_rows(x, name, threads=threads)
        if metric.nonnegative:
            inputs.check_nonnegative(rows, name, threads)
        return rows

    def threads_to_prepare(self, asked: int | None, n: int) -> int | None:
        return asked or default_threads(tuning.PREPARE_POINT * n)

    def check_plan(self, plan: Plan) -> None:
        if plan.devices:
            device = plan.devices[0] if len(plan.devices) == 1 else list(plan.devices)
            raise ValueError(f"the plan was made for {', '.join(plan.devices)}: pass device={device!r} with it")

    def no_others(self, rows: npt.NDArray[Any], metric: Metric) -> Neighbors:
        value = np.float64 if rows.dtype == np.float64 else np.float32
        return Neighbors(np.empty((len(rows), 0), value), np.empty((len(rows), 0), index_dtype(len(rows))))

    def with_self(self, found: Neighbors, rows: npt.NDArray[Any], metric: Metric) -> Neighbors:
        own = np.arange(len(rows), dtype=np.int64)[:, None]
        value = metric.self_value
        values = np.full((len(rows), 1), value or 0.0)
        if value is None:
            exact_values(metric.name, rows, rows, own, values)
        with np.errstate(over="ignore", under="ignore"):  # check_range, called later, refuses overflow
            first = values.astype(found.distances.dtype)
        ids = own.astype(found.indices.dtype)
        if value is None:
            check_range(first, ids, None, rows, rows, metric)
        return Neighbors(np.hstack([first, found.distances]), np.hstack([ids, found.indices]))

    def on(self, devices: tuple[str, ...]) -> CpuPlace:
        return self

    def there(self, x: Any) -> npt.NDArray[Any]:
        return x if isinstance(x, np.ndarray) else np.asarray(inputs.to_host(x))


def place_for(device: Any, **arrays: Any) -> Place:
    """Return the place where a call with this argument `device` and these arrays runs: the CPU, or CUDA devices."""
    devices = inputs.devices_for(device, **arrays)
    if not devices:
        return CpuPlace()
    from tonari.methods.places.place_cuda import CudaPlace

    there = {inputs.place_of(x, name) for name, x in arrays.items()} if may_take_fewer(device) else set()
    if len(there) != 1:  # use all requested devices: arrays on different devices are not moved
        return CudaPlace(devices)
    # the device of the arrays is always used, so it comes first
    return CudaPlace(tuple(sorted(devices, key=lambda name: name not in there)), may_take_fewer=True)


def may_take_fewer(device: Any) -> bool:
    """Return whether the argument `device` lets a method use fewer devices than it names.

    >>> may_take_fewer("cuda:all"), may_take_fewer(["cuda:0", "cuda:1"])
    (True, False)
    """
    return inputs.parse_device(device) == "cuda:all"
