"""One run of the benchmarks of k-selection: what was measured where, proved before timed, written as it comes.

A measurement ends as seconds or as a note that says why there are none: ``over the cap``, ``not reached`` (the run's
time was up), ``refused`` (the method does not take this case), ``out of memory``, or, both counted as wrong and told
by the exit status, ``WRONG`` and ``FAILED``.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from . import machine, report
from .exact_cpu import WrongAnswer
from .select_device import Device, Timing, take_turns
from .select_proof import Proof

RESULTS = report.RESULTS.with_name("select.csv")
LIBRARIES = ("tonari", "numpy", "torch", "triton")

COLUMNS = (
    "date",
    "machine",
    "device",
    "isa",
    "threads",
    "versions",
    "commit",
    "mode",
    "figure",
    "series",
    "rows",
    "n",
    "k",
    "dtype",
    "data",
    "method",
    "options",
    "nan",
    "repeats",
    "seconds_median",
    "seconds_min",
    "seconds_max",
    "gbps",
    "read_gbps",
    "copy_gbps",
    "fraction_read",
    "fraction_copy",
    "peer",
    "peer_seconds",
    "ratio",
    "bar_on",
    "bar",
    "passed",
    "counters",
    "verified",
    "note",
)

# A call that takes longer than this many seconds is timed once.
LONG = 0.5
# Rows that NumPy, which has one thread and no GPU, gets of a paper's case; its time is scaled to all of them.
NUMPY_ROWS = 16


def say(message: str) -> None:
    """Progress, on stderr."""
    print(message, file=sys.stderr, flush=True)


def numpy_select(values: Any, k: int) -> tuple[Any, Any]:
    """The k smallest of each row as NumPy users take them: argpartition, then the part sorted."""
    indices = np.argpartition(values, k - 1, axis=1)[:, :k]
    found = np.take_along_axis(values, indices, axis=1)
    order = np.argsort(found, axis=1)
    return np.take_along_axis(found, order, axis=1), np.take_along_axis(indices, order, axis=1)


def torch_select(tensor: Any, k: int) -> tuple[Any, Any]:
    """The k smallest of each row by torch.topk."""
    import torch

    found = torch.topk(tensor, k, dim=1, largest=False, sorted=True)
    return found.values, found.indices


PEERS = {"torch.topk": torch_select, "numpy": numpy_select}


@dataclass
class Run:
    """Where results go and what all of them share.

    Attributes
    ----------
    tonari : module with ``select_k``
    path : results file, or None for none
    rows, n : at most so many, to look quickly; None for all
    cap : seconds of one call beyond which a case is left out
    deadline : value of ``time.perf_counter`` after which nothing new is measured
    wrong : measurements that failed their proof or crashed so far
    """

    tonari: ModuleType
    device: Device
    path: Path | None
    rows: int | None = None
    n: int | None = None
    cap: float = 10.0
    deadline: float = float("inf")
    wrong: int = 0
    shared: dict[str, Any] = field(init=False)

    def __post_init__(self) -> None:
        versions = machine.library_versions(LIBRARIES)
        self.shared = {
            "date": machine.today(),
            "machine": self.device.title(),
            "device": self.device.kind,
            "isa": self.device.isa(),
            "threads": self.device.threads,
            "versions": " ".join(f"{name}={number}" for name, number in versions.items()),
            "commit": machine.commit(),
        }

    def describe(self) -> str:
        """One line for the head of a table."""
        facts = self.shared
        where = facts["machine"] if facts["isa"] is None else f"{facts['machine']}, {facts['isa']}"
        threads = "" if facts["threads"] is None else f" {facts['threads']} threads;"
        return (
            f"{where};{threads} read {self.device.read_rate() / 1e9:.1f} GB/s, "
            f"copy {self.device.copy_rate() / 1e9:.1f} GB/s; {facts['versions']}; commit {facts['commit']}; "
            f"{facts['date']}"
        )

    def over(self) -> bool:
        """Whether the run's time is up."""
        return time.perf_counter() > self.deadline

    def size(self, rows: int, n: int) -> tuple[int, int]:
        """The shape, cut to what this run looks at."""
        return min(rows, self.rows or rows), min(n, self.n or n)

    def write(self, rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """The rows with what all share, after appending them to the results file."""
        whole = [self.shared | row for row in rows]
        if self.path is not None:
            report.append(self.path, whole, COLUMNS)
        return whole

    def call(self, tensor: Any, k: int, method: str, options: dict[str, Any], nan: str) -> Callable[[], Any]:
        """One selection, ready to be run: by the library, or by a peer's name."""
        if method in PEERS:
            values = self.device.values(tensor) if method == "numpy" else tensor
            return lambda: PEERS[method](values, k)
        select_k, values = self.tonari.select_k, self.device.values(tensor)
        threads = {} if self.device.threads is None else {"threads": self.device.threads}
        return lambda: select_k(values, k, method=method, nan=nan, **threads, **options)

    def speed(self, timing: Timing, nbytes: int) -> dict[str, Any]:
        """Columns about the seconds of a selection from so many bytes."""
        rate, read, copy = nbytes / timing.median, self.device.read_rate(), self.device.copy_rate()
        return {
            "repeats": timing.repeats,
            "seconds_median": timing.median,
            "seconds_min": timing.least,
            "seconds_max": timing.most,
            "gbps": rate / 1e9,
            "read_gbps": read / 1e9,
            "copy_gbps": copy / 1e9,
            "fraction_read": rate / read,
            "fraction_copy": rate / copy,
        }

    def measure(
        self,
        proof: Proof,
        method: str,
        options: dict[str, Any],
        *,
        nan: str = "last",
        seconds: float = 0.2,
        least: int = 3,
        most: int = 10,
    ) -> dict[str, Any]:
        """Prove and time one selection: its columns about speed and proof, or a note."""
        tensor, k = proof.tensor, proof.k
        if method == "numpy":
            return self.numpy_scaled(tensor, k)

        def prove_and_time() -> dict[str, Any]:
            expected = self.estimate(tensor, k, method, options, nan)
            if expected > self.cap:
                return {"note": f"over the cap: {expected:.3g} s at least"}
            call = self.call(tensor, k, method, options, nan)
            found = call()
            if method in PEERS:
                proof.check_values(found[0])
                verified = len(proof.rows)
            else:
                verified = proof.check(found)
            del found
            rounds = least if expected <= LONG else 1
            timing = take_turns(self.device, {method: call}, seconds=seconds, least=rounds, most=most)[method]
            return self.speed(timing, tensor.nbytes) | {"verified": verified}

        return self.guarded(f"{method} {options or ''} at {tuple(tensor.shape)}, k = {k}", prove_and_time)

    def guarded(self, what: str, work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """What ``work`` returns, or the note that stands for it: one fault must not lose the rest of a run."""
        import torch

        if self.over():
            return {"note": "not reached"}
        try:
            return work()
        except WrongAnswer as error:
            note = f"WRONG: {error}"
        except ValueError as error:
            return {"note": f"refused: {error}"}
        except (MemoryError, torch.OutOfMemoryError):
            return {"note": "out of memory"}
        except Exception as error:
            note = f"FAILED: {type(error).__name__}: {error}"
        self.wrong += 1
        say(f"{what}: {note}")
        return {"note": " ".join(note.split())[:300]}

    def estimate(self, tensor: Any, k: int, method: str, options: dict[str, Any], nan: str) -> float:
        """Least seconds that the whole will take, from its first rows; 0 where the whole is no more than those."""
        part = self.device.slice_rows
        if len(tensor) <= part:
            return 0.0
        small = self.call(tensor[:part], k, method, options, nan)
        small()  # compiles
        return self.device.whole(self.device.once(small), part, len(tensor))

    def numpy_scaled(self, tensor: Any, k: int) -> dict[str, Any]:
        """NumPy on the host, one thread, on few rows; its seconds for all rows."""
        rows = min(len(tensor), NUMPY_ROWS)
        values = tensor[:rows].cpu().numpy()
        times = []
        for _ in range(3):
            start = time.perf_counter()
            numpy_select(values, k)
            times.append((time.perf_counter() - start) * len(tensor) / rows)
        timing = Timing(float(np.median(times)), min(times), max(times), len(times))
        fields = self.speed(timing, tensor.nbytes)
        return fields | {"note": f"one core, {rows} rows, scaled"} if rows < len(tensor) else fields


def case_columns(
    mode: str, proof: Proof, method: str, options: dict[str, Any], *, data: str = "random", nan: str = "last"
) -> dict[str, Any]:
    """Columns that say what a measurement is of."""
    rows, n = proof.tensor.shape
    return {
        "mode": mode,
        "rows": rows,
        "n": n,
        "k": proof.k,
        "dtype": str(proof.tensor.dtype).removeprefix("torch."),
        "data": data,
        "method": method,
        "options": json.dumps(options, sort_keys=True),
        "nan": nan,
    }
