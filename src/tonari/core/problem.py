"""The problem: everything that is asked of a search or graph, in one record that is made once at the border."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Problem:
    """A search of the k nearest of n points for each of m queries in d dimensions, and where it is to run.

    Checked when it is made, by :func:`tonari.metrics.problem.make_problem`; nothing below the border asks again.

    Attributes
    ----------
    n, m, d, k : int
        Points, queries, dimensions, neighbours.
    dtype, query_dtype : str
        Of the points and of the queries.
    metric : str
    self_join : bool
        The queries are the points, and none finds itself.
    devices : tuple of str
        "cuda:0" and so on; none for the CPU.
    host_points, host_queries : bool
        On CUDA, whether they are in host memory, from where they have to be copied.
    threads : int or None
        On the CPU; None leaves the choice to the plan.
    memory : int or None
        Bytes beyond the input that may be used, on CUDA on each device; None sets no limit but what is free there.
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
    host_points: bool = True
    host_queries: bool = True
    threads: int | None = None
    memory: int | None = None

    @property
    def device(self) -> str:
        """ "cpu" or "cuda"."""
        return "cuda" if self.devices else "cpu"

    @property
    def value_dtype(self) -> str:
        """Of returned distances."""
        return "float64" if "float64" in (self.dtype, self.query_dtype) else "float32"
