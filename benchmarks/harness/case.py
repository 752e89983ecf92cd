"""The record of a case, of what it is held to, and of a suite of cases: data that suites and papers are made of."""

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
    """What a measurement is held to.

    Attributes
    ----------
    on : what is measured; of a peer's name, its seconds over ours
    bound : the measurement has to be at least this, or with `most` at most
    home : part of the name of the machine that the bar was set for; empty for any
    isa : instruction set that it was set for; empty for any
    """

    on: str
    bound: float
    most: bool = False
    home: str = "H100"
    isa: str = ""

    def verdict(self, value: float, *, judged: bool) -> dict[str, Any]:
        """The columns of a verdict; without one, of what was measured."""
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
    n, m, d, k : points, queries, dimensions, neighbours; a selection is of k of n values in each of m rows
    graph : the queries are the points, and no point finds itself
    prepared : an index of the points is made before the clock starts
    asked : queries that there are where they come one at a time (m = 1); seconds are of one
    loops : calls back to back whose time is shared out, where one is too short for a clock
    truth_k : largest k of the cases that share these data and what is true of them
    grid : (m, d) of a sweep over both
    chunk : queries of a stream's chunk
    split : points of the first of two graphs that are merged
    exact_rows : rows that brute force is timed on, 0 for none; what it takes is scaled to all
    auto : whether method="auto" is timed too
    screened : whether the screen is timed by itself too
    target : recall that is asked for
    parameters : of the plan, beside what it chooses
    peers : who is timed beside tonari
    against : those of them that the bars are about, of whom the fastest counts; empty for the one a bar names
    peer_settings : with which peers are timed too, beside their defaults
    figure : of the paper that the case measures
    rare : runs only when its name is asked for
    gpus, gigabytes : of the machine, without peers
    warm_scale : part of the points with which a warm-up compiles what the whole needs
    cost : seconds that the whole takes on the machine it is for, peers included
    work : what proves, times and writes it, called with the run and the case
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
        """Whether queries come one at a time."""
        return self.asked > 0

    @property
    def queries(self) -> int:
        """Queries to make."""
        return 0 if self.graph else self.asked or self.m

    def resized(self, **changes: Any) -> Case:
        """The case with other sizes."""
        return replace(self, **changes)

    def scaled(self, scale: float) -> Case:
        """Fewer points and queries, enough for k all the same; a graph then has as many queries as points."""
        if scale == 1:
            return self
        n = min(self.n, max(round(self.n * scale), 4 * max(self.k, self.truth_k)))
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
        """Columns of the results that say what was asked."""
        sizes = {name: getattr(self, name) or None for name in ("n", "m", "d", "k")}
        names = ("metric", "dtype", "data", "prepared", "figure")
        return {"case": self.name} | sizes | {name: getattr(self, name) for name in names}


@dataclass(frozen=True)
class FirstCalls:
    """Work that is a process of its own each time, as a first call has to be.

    Attributes
    ----------
    call : runs a process; returns the ``seconds`` of its first call, its ``answer``, and how many ``kernels`` it has
        compiled
    """

    call: Callable[[], dict[str, Any]]


@dataclass(frozen=True)
class Suite:
    """The cases that one command runs, and what they share.

    Attributes
    ----------
    name : the word on the command line and in the column ``suite``
    results : name of the file in benchmarks/results
    libraries : whose versions are written into rows
    torch : whether cases work on torch's tensors; such a run proves its own proof first
    repeats, peer_seconds : defaults of the command line
    workload : one call of tonari's public verbs on a case, for comparing versions; None where there is none
    figures : what is drawn of rows
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
        """Where results are."""
        return RESULTS / f"{self.results}.csv"

    def chosen(self, device: str, patterns: Sequence[str] | None) -> list[Case]:
        """Cases of a device that match any pattern, in their own order; without patterns all but the rare ones.

        Raises
        ------
        SystemExit
            A pattern matches none.
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
        """Devices that it has cases for."""
        return tuple(dict.fromkeys(case.device for case in self.cases))
