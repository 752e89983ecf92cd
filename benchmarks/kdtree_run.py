"""One run of the benchmarks of the k-d tree, on some threads of a processor or on a GPU."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from . import exact_gpu_proof, kdtree_data, kdtree_rows
from .exact_cpu import BAR_THREADS
from .exact_gpu_data import DeviceData
from .exact_gpu_rows import Bar, seconds_of
from .exact_gpu_run import Run
from .select_device import Timing

if TYPE_CHECKING:
    from .kdtree_cases import Case

# Pairs that two cores put in their true order in some 20 s; a GPU has time for all rows that are proved elsewhere.
PROVED_PAIRS_ON_CPU = 1 << 26


@dataclass
class TreeRun(Run):
    """A run whose rows are those of ``kdtree_rows``; `where` is torch's "cpu" or "cuda:0".

    Attributes
    ----------
    threads : threads of everyone, on the CPU
    """

    threads: int | None = None
    columns: ClassVar[tuple[str, ...]] = kdtree_rows.COLUMNS
    libraries: ClassVar[tuple[str, ...]] = kdtree_rows.LIBRARIES
    line_of: ClassVar[Callable[[dict[str, Any]], str]] = staticmethod(kdtree_rows.line_of)

    def __post_init__(self) -> None:
        super().__post_init__()
        del self.shared["gpus"]
        self.shared |= {"device": self.device.kind, "isa": self.device.isa(), "threads": self.threads}

    @property
    def cuda(self) -> bool:
        """Whether the run is on a GPU."""
        return self.device.kind == "cuda"

    def describe(self) -> str:
        """One line for the head of a table."""
        facts = self.shared
        cores = f", {self.threads} threads, {facts['isa']}" if self.threads else ""
        return f"{facts['machine']}{cores}; {facts['versions']}; commit {facts['commit']}; {facts['date']}"

    def data(self, case: Case) -> DeviceData:
        """The rows of a case; cases that follow one another share theirs."""
        shape = (case.data, case.n, 0 if case.graph else case.m, case.d)
        found: DeviceData = self.keep(shape, lambda: kdtree_data.make(*shape, self.where))
        return found

    def proof(self, case: Case, data: DeviceData) -> Any:
        """The truth about some rows, for the largest k that is asked of them."""
        key = "truth", case.graph, max(case.k, case.truth_k)
        if key not in self.kept:
            count = exact_gpu_proof.PROVED_ROWS
            if not self.cuda:
                count = max(1, min(count, PROVED_PAIRS_ON_CPU // len(data.points)))
            queries = data.points if case.graph else data.queries
            self.kept[key] = exact_gpu_proof.Proof(
                queries, data.points, key[2], self.where, graph=case.graph, count=count
            )
        return self.kept[key]

    def speed(self, case: Case, timing: Timing) -> dict[str, Any]:
        """Columns about the seconds of all queries of a case."""
        return seconds_of(timing) | {"queries_per_s": case.m / timing.median}

    def verdicts(self, bars: Sequence[Bar], measured: dict[str, float]) -> list[dict[str, Any]]:
        """Columns of the verdict on each bar that there is a measurement for; one row without where there is none.

        On a processor bars are judged with as many threads as they were set for.
        """
        scale = self.scale if self.threads in (None, BAR_THREADS) else 0.0
        judged = [bar.verdict(measured[bar.on], self.shared["machine"], scale) for bar in bars if bar.on in measured]
        return judged or [{}]
