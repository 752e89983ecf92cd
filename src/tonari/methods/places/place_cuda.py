"""CUDA devices as the place where a call runs, with the interface of ``place.py``."""

from __future__ import annotations

from typing import Any

import numpy as np

from tonari import inputs
from tonari.core.plan import Plan
from tonari.core.results.neighbors import Neighbors
from tonari.cuda import self_neighbors
from tonari.cuda.devices import to_device
from tonari.exact.cuda.attempts.first import no_others
from tonari.methods.places.place import CpuPlace
from tonari.methods.places.value_range import check_range
from tonari.metrics import Metric
from tonari.select.cuda.ordering.merge import no_lists


class CudaPlace:
    """One or several CUDA devices.

    The kernels that pack the rows also check their values, so that a search raises errors about NaN, infinity and other
    refused values only at its end.

    Parameters
    ----------
    devices : tuple of str
    may_take_fewer : bool
        Whether a search may run on fewer of these devices.
    """

    device = "cuda"

    def __init__(self, devices: tuple[str, ...], *, may_take_fewer: bool = False) -> None:
        self.devices, self.may_take_fewer = devices, may_take_fewer

    def rows(self, x: Any, name: str, metric: Metric, threads: int | None = None) -> Any:
        bits, place = metric.bits, inputs.place_of(x, name)
        if place is None:
            return inputs.as_bits(x, name) if bits else inputs.as_rows(x, name, check_values=False)
        if place not in self.devices:
            raise ValueError(f"{name}: is on {place}, but the points are on {', '.join(self.devices)}; copy it there")
        return inputs.as_device_bits(x, name) if bits else inputs.as_device_rows(x, name)

    def threads_to_prepare(self, asked: int | None, n: int) -> int | None:
        return asked  # if `threads` is set, the planner refuses it, since only searches on the CPU have this option

    def check_plan(self, plan: Plan) -> None:
        made_for = plan.devices or ("cpu",)
        if made_for != self.devices and not (self.may_take_fewer and set(made_for) <= set(self.devices)):
            raise ValueError(
                f"the plan was made for {', '.join(made_for)}, but this search runs on {', '.join(self.devices)}"
            )

    def no_others(self, rows: Any, metric: Metric) -> Neighbors:
        if isinstance(rows, np.ndarray):
            on_cpu = CpuPlace()
            return on_cpu.no_others(on_cpu.rows(rows, "points", metric), metric)
        if metric.bits:  # rows of bits have no invalid values
            return no_lists(len(rows), 0, len(rows), metric.name, double=False, device=rows.device)
        return no_others(rows, metric.name)

    def with_self(self, found: Neighbors, rows: Any, metric: Metric) -> Neighbors:
        if isinstance(rows, np.ndarray):
            return CpuPlace().with_self(found, rows, metric)
        both = self_neighbors.with_self(found, rows, metric.name)
        if metric.self_value is None:
            check_range(both.distances[:, :1], both.indices[:, :1], None, rows, rows, metric)
        return both

    def on(self, devices: tuple[str, ...]) -> CudaPlace:
        return CudaPlace(devices)

    def there(self, x: Any) -> Any:
        here = np.ascontiguousarray(x) if isinstance(x, np.ndarray) else inputs.as_tensor(x)
        return to_device(here, self.devices[0])
