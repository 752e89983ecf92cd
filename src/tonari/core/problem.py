"""The problem: one record with everything that defines a search or a graph, made by every call of a public function."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypedDict

from tonari.core.results.neighbors import value_dtype


class PlanFields(TypedDict):
    """The fields that a problem and its plan have in common."""

    n: int
    m: int
    d: int
    k: int
    dtype: str
    metric: str
    device: str
    devices: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Problem:
    """A search for the k nearest of n points to each of m queries in d dimensions, and the devices that it may use.

    :func:`tonari.metrics.problem.make_problem` makes and checks it; code below the API does not check it again.

    Attributes
    ----------
    n, m, d, k : int
        Points, queries, dimensions, neighbours.
    dtype, query_dtype : str
        dtypes of the points and of the queries.
    metric : str
        The name of the metric.
    self_join : bool
        Whether the queries are the points; no point is then its own neighbour.
    devices : tuple of str
        "cuda:0" and so on; empty for the CPU.
    may_take_fewer : bool
        Whether a method may use only the first few of the devices, if it expects to be faster on these.
    host_points, host_queries : bool
        On CUDA, whether the points and the queries are in host memory, and have to be copied to the devices.
    threads : int or None
        CPU threads; None if the planner is to choose their number.
    memory : int or None
        The memory budget beyond the input in bytes (on CUDA, per device); None allows all free memory.
    """

    n: int
    m: int
    d: int
    k: int
    dtype: str
    query_dtype: str
    metric: str
    self_join: bool = False
    devices: tuple[str, ...] = ()
    may_take_fewer: bool = False
    host_points: bool = True
    host_queries: bool = True
    threads: int | None = None
    memory: int | None = None

    @property
    def device(self) -> str:
        """ "cpu" or "cuda"."""
        return "cuda" if self.devices else "cpu"

    def plan_fields(self) -> PlanFields:
        """Return the fields that this problem and its plan have in common."""
        return {
            "n": self.n,
            "m": self.m,
            "d": self.d,
            "k": self.k,
            "dtype": self.dtype,
            "metric": self.metric,
            "device": self.device,
            "devices": self.devices,
        }

    @property
    def value_dtype(self) -> str:
        """The dtype of the returned distances."""
        return value_dtype(self.dtype, self.query_dtype)
