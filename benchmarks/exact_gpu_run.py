"""One run of the benchmarks of the exact engine on GPUs: what all its rows share, clocks, proofs, rows as they come."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar

from . import machine, report
from .exact_cpu import WrongAnswer
from .exact_gpu_ceilings import Ceilings
from .exact_gpu_peers import PEERS, Peer
from .exact_gpu_proof import Proof
from .exact_gpu_rows import COLUMNS, Bar, line_of, seconds_of
from .select_device import Device, Timing, take_turns

if TYPE_CHECKING:
    from .exact_gpu_cases import Case
    from .exact_gpu_data import DeviceData

LIBRARIES = ("tonari", "numpy", "torch", "triton", "cuvs-cu13", "flashlib")

# Seconds of a call beyond which it is timed three times, and once.
LONG, VERY_LONG = 1.0, 20.0


class Poisoned(RuntimeError):
    """The CUDA context is beyond use: nothing more can be measured in this process."""


def say(message: str) -> None:
    """Progress, on stderr."""
    print(message, file=sys.stderr, flush=True)


@dataclass
class Run:
    """Where results go and what all of them share.

    Attributes
    ----------
    tonari : module with the verbs
    where : device of torch that data and answers live on
    path : results file, or None for none
    scale : factor of points and queries, for a quick look
    repeats : timed calls; fewer of long ones
    peer_seconds : longest call of a peer before it gets a slice of the queries
    deadline : value of ``time.perf_counter`` after which nothing new is begun
    rows : all rows so far
    wrong : measurements of ours that failed their proof or crashed
    """

    tonari: ModuleType
    device: Device
    where: str
    ceilings: Ceilings
    path: Path | None = None
    scale: float = 1.0
    repeats: int = 7
    peer_seconds: float = 1.0
    deadline: float = float("inf")
    rows: list[dict[str, Any]] = field(default_factory=list)
    wrong: int = 0
    kept: dict[Any, Any] = field(default_factory=dict)
    shared: dict[str, Any] = field(init=False)
    columns: ClassVar[tuple[str, ...]] = COLUMNS
    libraries: ClassVar[tuple[str, ...]] = LIBRARIES
    line_of: ClassVar[Callable[[dict[str, Any]], str]] = staticmethod(line_of)

    def __post_init__(self) -> None:
        versions = machine.library_versions(self.libraries)
        self.shared = {
            "date": machine.today(),
            "machine": self.device.title(),
            "gpus": 1,
            "versions": " ".join(f"{name}={number}" for name, number in versions.items()),
            "commit": machine.commit(),
            "scale": self.scale,
        }

    def describe(self) -> str:
        """One line for the head of a table."""
        facts = self.shared
        return (
            f"{facts['machine']}; {self.ceilings.describe()}; {facts['versions']}; commit {facts['commit']}; "
            f"{facts['date']}"
        )

    def reaches(self, seconds: float) -> bool:
        """Whether something that takes about so long would still end in time."""
        return time.perf_counter() + seconds <= self.deadline

    def write(self, case: Case, rows: Sequence[dict[str, Any]]) -> None:
        """Append rows about a case to the results, and show them."""
        whole = [self.shared | case.columns() | row for row in rows]
        if self.path is not None:
            report.append(self.path, whole, self.columns)
        self.rows += whole
        for row in whole:
            say(self.line_of(row))

    def keep(self, key: Any, make: Callable[[], Any]) -> Any:
        """The data that `make` gives, kept until others are made: cases that follow one another share theirs."""
        if key not in self.kept:
            self.kept.clear()
            self.free()
            self.kept[key] = make()
        return self.kept[key]

    def free(self) -> None:
        """Give cached memory back: peers have allocators of their own."""
        if self.where.startswith("cuda"):
            import torch

            torch.cuda.empty_cache()

    def time(self, call: Callable[[], object], *, loops: int = 1) -> Timing:
        """Time a call that ran before; with `loops` so many back to back, the seconds of one."""

        def repeated() -> None:
            for _ in range(loops):
                call()

        first = self.device.once(repeated)
        if first > VERY_LONG:
            return Timing(first / loops, first / loops, first / loops, 1)
        count = self.repeats if first <= LONG else min(3, self.repeats)
        timing = take_turns(self.device, {"": repeated}, seconds=0.0, least=count, most=count)[""]
        return Timing(*(seconds / loops for seconds in timing[:3]), timing.repeats)

    def time_once(self, call: Callable[[], object]) -> float:
        """Seconds of one call."""
        return self.device.once(call)

    def proof(self, case: Case, data: DeviceData) -> Any:
        """The truth about a case's data, kept beside them; for the largest k that is asked of them."""
        k = max(case.k, case.truth_k)
        key = "truth", case.graph, k
        if key not in self.kept:
            queries = data.points if case.graph else data.queries
            self.kept[key] = Proof(queries, data.points, k, self.where, graph=case.graph)
        return self.kept[key]

    def peers_of(self, case: Case) -> list[Peer]:
        """The peers that a case is measured against."""
        return [PEERS[name] for name in case.peers]

    def prove(self, check: Callable[[], int]) -> int:
        """Rows that a check compared; it raises WrongAnswer."""
        return check()

    def speed(self, case: Case, timing: Timing) -> dict[str, Any]:
        """Columns about the seconds of all pairs of a case's queries and points."""
        pairs = case.m * case.n / timing.median
        flops = 2 * case.d * pairs
        gemm = self.ceilings.gemm()
        return seconds_of(timing) | {
            "pairs_per_s": pairs,
            "tflops": flops / 1e12,
            "gemm_tflops": gemm / 1e12,
            "fraction_gemm": flops / gemm,
            "copy_gbps": self.ceilings.copy() / 1e9,
        }

    def verdicts(self, bars: Sequence[Bar], measured: dict[str, float]) -> list[dict[str, Any]]:
        """Columns of the verdict on each bar that there is a measurement for; one row without where there is none."""
        judged = [
            bar.verdict(measured[bar.on], self.shared["machine"], self.scale) for bar in bars if bar.on in measured
        ]
        return judged or [{}]

    def guarded(self, case: Case, who: str, work: Callable[[], None]) -> None:
        """Run `work`; where it fails, a row that says how: one fault must not lose the rest of a run."""
        import torch

        try:
            work()
            return
        except WrongAnswer as error:
            note = f"WRONG: {error}"
        except (MemoryError, torch.OutOfMemoryError):
            note = "out of memory"
        except Exception as error:
            note = f"FAILED: {type(error).__name__}: {error}"
        self.wrong += who.startswith("tonari")
        self.write(case, [{"who": who, "note": " ".join(note.split())[:300]}])
        self.free()
        if "CUDA error" in note:
            raise Poisoned(note)
