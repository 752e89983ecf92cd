"""The fields and methods that the plans of all methods share."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from tonari.core.problem import Problem
from tonari.core.results import html
from tonari.core.units import MIB


class Override(NamedTuple):
    """The description of a plan's field that callers may set.

    Attributes
    ----------
    meaning : str
        A short description, shown to users.
    kind : str
        "whole" (a whole number), "flag", "word", or "words" (a tuple of words).
    least : int
        Smallest allowed value of a whole number.
    """

    meaning: str
    kind: Literal["whole", "flag", "word", "words"] = "whole"
    least: int = 1


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The choices for one search or graph that are made before it runs; every method adds fields of its own.

    Attributes
    ----------
    n, m, d, k : int
        Points, queries, dimensions, neighbours.
    dtype, metric, method : str
        Names: the dtype of the points, the metric, and the method.
    device : str
        "cpu" or "cuda".
    devices : tuple of str
        "cuda:0" and so on; empty on the CPU.
    isa : str
        Instruction set of the CPU kernels: generic, avx2, avx512, amx or neon; "" on CUDA.
    threads : int
        CPU threads; 0 on CUDA.
    packed_bytes, copied_bytes, working_bytes, output_bytes : int
        Bytes beyond the input (on CUDA, on each device): for points in the layout of the method, for rows copied from
        host memory, for temporary buffers, and for results.
    seconds : float
        Expected duration, by the cost model of the method.
    """

    n: int
    m: int
    d: int
    k: int
    dtype: str
    metric: str
    method: str
    device: str
    devices: tuple[str, ...]
    isa: str
    threads: int
    packed_bytes: int
    copied_bytes: int
    working_bytes: int
    output_bytes: int
    seconds: float

    @property
    def total_bytes(self) -> int:
        """The memory beyond the input in bytes; on CUDA, on each device."""
        return self.packed_bytes + self.copied_bytes + self.working_bytes + self.output_bytes

    @property
    def workers(self) -> int:
        """The number of threads, or of devices on CUDA."""
        return self.threads or len(self.devices)

    @property
    def devices_chosen(self) -> str:
        """A phrase with the number of devices and the reason for it; "" if the number was not chosen."""
        return ""

    @property
    def replayable(self) -> bool:
        """Whether searches that differ only in their values may be captured as a CUDA graph and replayed."""
        return False

    @property
    def packs_anew(self) -> str:
        """A phrase with the count of points that stay packed, and the memory to pack all; "" if all stay packed."""
        return ""

    def for_problem(self, problem: Problem) -> Plan:
        """Return this plan, adapted to a problem; raise ValueError if it was made for another problem."""
        for name in ("n", "m", "d", "k", "metric", "dtype"):
            ours, theirs = getattr(self, name), getattr(problem, name)
            if ours != theirs:
                raise ValueError(f"the plan was made for {name}={ours!r}, but this search has {name}={theirs!r}")
        return self

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as plain values, for JSON."""
        return dataclasses.asdict(self) | {"total_bytes": self.total_bytes}

    def __str__(self) -> str:
        return table(self.as_dict())

    def _repr_html_(self) -> str:
        """Return the fields as an HTML table, for notebooks."""
        return html.table([(name, shown(name, value)) for name, value in self.as_dict().items()])


@dataclass(frozen=True)
class WrittenPlan:
    """A plan that was read from a file, which consists only of named fields."""

    fields: dict[str, Any]

    def as_dict(self) -> dict[str, Any]:
        """Return the fields."""
        return self.fields

    def __str__(self) -> str:
        return table(self.fields)


def table(fields: dict[str, Any]) -> str:
    """Format the fields of a plan for people, one per line."""
    return "\n".join(f"{name:>14}  {shown(name, value)}" for name, value in fields.items())


def shown(name: str, value: Any) -> str:
    """Format the value of a field of a plan for people."""
    if value in ((), ""):
        return "-"
    if name.endswith("_bytes"):
        return f"{value / MIB:,.1f} MiB"
    if name == "seconds":
        return f"{value:.3g}"
    if isinstance(value, tuple):
        return " > ".join(map(str, value))
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
