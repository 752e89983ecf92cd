"""Records of benchmark cases, of the bounds that their results have to meet (bars), and of suites of cases."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from .plots import Figure
from .rows import RESULTS


@dataclass(frozen=True)
class Bar:
    """A bar: the bound that a measured quantity has to meet.

    Attributes
    ----------
    on : name of the measured quantity; a peer's name stands for the peer's seconds divided by tonari's
    bound : the smallest value that meets the bar; with `most`, the largest one
    home : part of the name of the machine for which the bar was set; empty for any machine
    isa : the instruction set for which the bar was set; empty for any
    """

    on: str
    bound: float
    most: bool = False
    home: str = "H100"
    isa: str = ""

    def verdict(self, value: float, *, judged: bool) -> dict[str, Any]:
        """Return the columns of results about the bar; ``passed`` is None if the bar is not judged."""
        passed = bool(value <= self.bound if self.most else value >= self.bound)
        return {"bar_on": self.on, "bar": self.bound, "value": value, "passed": passed if judged else None}

    def __str__(self) -> str:
        return f"{self.on} {'<=' if self.most else '>='} {self.bound:.3g}{f' ({self.isa})' if self.isa else ''}"


@dataclass(frozen=True)
class Case:
    """One workload.

    Attributes
    ----------
    device : "cpu" or "cuda"
    n, m, d, k : points, queries, dimensions, neighbours; a selection finds the k smallest of n values in each of m rows
    graph : whether the queries are the points themselves, and each point's list leaves out the point
    prepared : whether an index of the points is made before the clock starts
    asked : number of queries, if they are searched one at a time (m = 1); seconds are per query
    loops : number of successive calls whose time is averaged, if one call is too short for a clock
    truth_k : the largest k of all cases that share these data: the true neighbours are computed once, for this k
    grid : pairs (m, d) of a case that varies the numbers of queries and of dimensions
    chunk : number of queries in each chunk of a stream
    split : if two graphs are merged, the number of points of the first graph
    exact_rows : number of queries on which brute force is timed (0: not timed); its time is scaled to all queries
    auto : whether method="auto" is timed too
    screened : whether the low-precision screen is also timed by itself
    target : the requested recall
    parameters : names of plan fields, and the values to which the case sets them
    peers : libraries that are timed as well
    against : peers to which the bars refer; the fastest one counts. Empty: each bar names its peer
    peer_settings : settings with which peers are timed, in addition to their defaults
    figure : figure of the paper that the case measures
    rare : whether the case runs only if its name is given
    gpus, gigabytes : number of GPUs and memory that the case needs, not counting its peers
    warm_scale : share of the points with which a warm-up compiles every kernel of the case
    cost : expected seconds of the whole case on its machine, peers included
    work : function (run, case) that verifies the answers, times the calls and writes rows of results
    """

    name: str
    device: str
    n: int
    m: int
    d: int
    k: int
    work: Callable[[Any, Any], None]
    data: str = "gaussian"
    metric: str = "euclidean"
    dtype: str = "float32"
    graph: bool = False
    prepared: bool = False
    asked: int = 0
    loops: int = 1
    truth_k: int = 0
    grid: tuple[tuple[int, int], ...] = ()
    chunk: int = 0
    split: int = 0
    exact_rows: int = 0
    auto: bool = False
    screened: bool = False
    target: float = 0.0
    parameters: Mapping[str, Any] = field(default_factory=dict)
    bars: tuple[Bar, ...] = ()
    peers: tuple[str, ...] = ()
    against: tuple[str, ...] = ()
    peer_settings: tuple[Mapping[str, Any], ...] = ()
    figure: str = ""
    rare: bool = False
    gpus: int = 1
    gigabytes: float = 5.0
    warm_scale: float = 1.0
    cost: float = 30.0

    @property
    def single(self) -> bool:
        """Whether queries are searched one at a time."""
        return self.asked > 0

    @property
    def queries(self) -> int:
        """The number of query rows in the data of the case; 0 for a graph, whose queries are its points."""
        return 0 if self.graph else self.asked or self.m

    def resized(self, **changes: Any) -> Case:
        """Return a copy of the case with other values of some attributes."""
        return replace(self, **changes)

    def scaled(self, scale: float) -> Case:
        """Return the case with fewer points and queries, but still enough for k.

        A graph has as many queries as points.
        """
        if scale == 1:
            return self
        n = min(self.n, max(round(self.n * scale), 4 * max(1, self.k, self.truth_k)))
        m = n if self.graph else min(self.m, max(2, round(self.m * scale)))
        return replace(
            self,
            n=n,
            m=m,
            grid=tuple((max(1, round(m * scale)), d) for m, d in self.grid),
            chunk=max(1, round(self.chunk * scale)),
            split=round(self.split * n / self.n) if self.split else 0,
            exact_rows=round(self.exact_rows * scale),
        )

    def columns(self) -> dict[str, Any]:
        """Return the columns of the results that describe the case."""
        sizes = {name: getattr(self, name) or None for name in ("n", "m", "d", "k")}
        names = ("metric", "dtype", "data", "prepared", "figure")
        return {"case": self.name} | sizes | {name: getattr(self, name) for name in names}


@dataclass(frozen=True)
class FirstCalls:
    """Work whose every run needs a new process, such as a first call.

    Attributes
    ----------
    call : runs a process; returns the ``seconds`` of its first call, its ``answer``, and the number of ``kernels`` that
        it compiled
    """

    call: Callable[[], dict[str, Any]]


@dataclass(frozen=True)
class Suite:
    """The cases that one command runs, and their common properties.

    Attributes
    ----------
    name : the word on the command line and in the column ``suite``
    results : name of the file in benchmarks/results
    libraries : libraries whose versions are written into rows
    torch : whether cases use torch's tensors; such a run first compares the proof in torch with the reference in NumPy
    repeats, peer_seconds : defaults of the command line
    workload : function (run, case) that returns the call that a comparison of two versions times; None if there is none
    figures : function that makes the figures of the suite from its rows; None if it has none
    """

    name: str
    results: str
    cases: tuple[Case, ...]
    libraries: tuple[str, ...]
    torch: bool = True
    repeats: int = 5
    peer_seconds: float = 5.0
    workload: Callable[[Any, Case], Callable[[], Any] | FirstCalls] | None = None
    figures: Callable[[Sequence[dict[str, Any]]], Iterator[Figure]] | None = None

    @property
    def path(self) -> Path:
        """The path of the CSV file with the results."""
        return RESULTS / f"{self.results}.csv"

    def chosen(self, device: str, patterns: Sequence[str] | None) -> list[Case]:
        """Return a device's cases whose names match any of the patterns; without patterns, all cases that are not rare.

        Raises
        ------
        SystemExit
            A pattern matches no case.
        """
        here = {case.name: case for case in self.cases if case.device == device}
        for pattern in patterns or ():
            if not fnmatch.filter(here, pattern):
                raise SystemExit(
                    f"no case of {self.name} on {device} matches {pattern!r}; there are: {', '.join(here) or 'none'}"
                )
        if not patterns:
            return [case for case in here.values() if not case.rare]
        return [case for name, case in here.items() if any(fnmatch.fnmatch(name, one) for one in patterns)]

    @property
    def devices(self) -> tuple[str, ...]:
        """The devices for which the suite has cases."""
        return tuple(dict.fromkeys(case.device for case in self.cases))
