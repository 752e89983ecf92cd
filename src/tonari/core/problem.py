"""What is asked: one record, made once at the border and handed on."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass


@dataclass(frozen=True)
class Problem:
    """A search or a graph, and what it may use; whoever makes one has checked it.

    Attributes
    ----------
    n, m, d, k : int
        Points, queries, dimensions, neighbours. In a self-join m is n, and no point is its own neighbour.
    dtype, query_dtype : str
        Of points and queries.
    metric : str
        Name in ``tonari.metrics``.
    self_join : bool
        Whether the queries are the points themselves.
    devices : tuple of str
        "cuda:0" and so on; none for the CPU.
    host_points, host_queries : bool
        Whether they lie in host memory, from where they are copied to a device.
    threads : int, optional
        On the CPU; None leaves the choice open.
    memory : int, optional
        Bytes beyond the input that may be used, on CUDA those of each device.
    free_bytes : int, optional
        On CUDA, memory that can be had on each device; None: what is found free there.
    """

    n: int
    m: int
    d: int
    k: int
    dtype: str = "float32"
    query_dtype: str = ""
    metric: str = "euclidean"
    self_join: bool = False
    devices: tuple[str, ...] = ()
    host_points: bool = True
    host_queries: bool = True
    threads: int | None = None
    memory: int | None = None
    free_bytes: int | None = None

    def __post_init__(self) -> None:
        if not self.query_dtype:
            object.__setattr__(self, "query_dtype", self.dtype)

    @property
    def device(self) -> str:
        """ "cpu" or "cuda"."""
        return "cuda" if self.devices else "cpu"

    @property
    def value_dtype(self) -> str:
        """The dtype of distances: float64 where points or queries are."""
        return "float64" if "float64" in (self.dtype, self.query_dtype) else "float32"

    def replace(self, **changes: object) -> Problem:
        """The same with other values of some attributes."""
        return dataclasses.replace(self, **changes)  # type: ignore[arg-type]
