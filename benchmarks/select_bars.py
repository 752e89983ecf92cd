"""The speed that ``tonari.select_k`` is held to: float32, sorted, indices returned, method "auto".

A bar is on one of these, and met when what was measured is at least the bar:

==============  ==================================================================
``GB/s``        bytes of input over seconds
``read``        the same over the rate at which this machine reads
``torch.topk``  its seconds over ours, in the same rounds (``numpy`` likewise)
``random``      seconds on random data of the same shape over seconds on this data
==============  ==================================================================

Both ``nan="refuse"``, the default, and ``nan="last"``, which never makes the host wait for a GPU, are timed and judged;
on a GPU also "graph": the latter replayed from a CUDA graph, which leaves the host's part out.
Bars were set for an H100, and for two threads of a CPU: other machines are recorded without a verdict.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from . import report, select_data
from .select_device import take_turns
from .select_proof import Proof
from .select_run import PEERS, Run, case_columns, say

MODE = "bars"
NANS_OF = {"cuda": ("refuse", "last", "graph"), "cpu": ("refuse", "last")}
ADVERSE = ("leading", "ascending", "descending", "equal")
WITHIN = 1 / 1.5
LARGEST_K = 2048
# Seconds of timing per cell.
SECONDS = {"cuda": 0.4, "cpu": 15.0}
PEERS_OF = {"cuda": ("torch.topk",), "cpu": ("torch.topk", "numpy")}


@dataclass(frozen=True)
class Cell:
    """One shape, k and kind of data, with its bars: what each is on, and the least."""

    rows: int
    n: int
    k: int
    data: str = "random"
    bars: Mapping[str, float] = field(default_factory=dict)


def cuda_cells() -> Iterator[Cell]:
    """An H100's."""
    for n in (2**15, 2**17, 2**20):
        for rows in (2**11, 2**12, 2**13):
            for k in (10, 64, 256):
                yield Cell(rows, n, k, bars={"GB/s": 1800, "torch.topk": 5})
            for k in (512, 1024, 2048):
                yield Cell(rows, n, k, bars={"GB/s": 1000})
    for rows in (1, 4, 16):
        for k in (10, 64, 256, 1024):
            yield Cell(rows, 2**24, k, bars={"GB/s": 1500, "torch.topk": 2})
    for n in (2**10, 2**11, 2**12, 2**13):
        for k in (10, 32, 64):
            yield Cell(2**13, n, k, bars={"torch.topk": 2})
    for data in ADVERSE:
        yield Cell(2**12, 2**17, 64, data, {"random": WITHIN})


def cpu_cells() -> Iterator[Cell]:
    """Two threads' of a CPU."""
    for k in (32, 64, 128, 256, 512, 1024):
        read = {"read": 0.5} if k <= 64 else {}
        yield Cell(2**13, 2**15, k, bars={"numpy": 5, "torch.topk": 2, **read})
    for data in ADVERSE:
        yield Cell(2**13, 2**15, 64, data, {"random": WITHIN})


def cells_of(run: Run) -> list[Cell]:
    """The cells of the run's device, cut to its size; one that was cut, or runs elsewhere, has no bars."""
    device = run.device
    home = "H100" in device.title() if device.kind == "cuda" else device.threads == 2
    found: dict[tuple[int, int, int, str], Cell] = {}
    for cell in cuda_cells() if device.kind == "cuda" else cpu_cells():
        rows, n = run.size(cell.rows, cell.n)
        if (rows, n) != (cell.rows, cell.n) or not home:
            cell = replace(cell, rows=rows, n=n, bars={})
        if cell.k <= n:
            found.setdefault((rows, n, cell.k, cell.data), cell)
    return list(found.values())


def run_bars(run: Run) -> list[dict[str, Any]]:
    """Prove and time every cell: its rows of results."""
    device = run.device
    cells = cells_of(run)
    fitting = [cell for cell in cells if cell.rows * cell.n * 4 <= device.memory()]
    random = [cell.rows * cell.n for cell in fitting if cell.data == "random"]
    pool = select_data.Pool(max(random), "float32", device.kind)
    reference: dict[tuple[int, int, int, str], float] = {}
    proofs: dict[tuple[int, int, str], Proof] = {}
    results = []
    for cell in cells:
        if cell not in fitting:
            rows = [_left_out(cell, "larger than half of the memory")]
        else:
            say(f"{cell.rows} x {cell.n}, k = {cell.k}, {cell.data}")
            rows = _rows_of(run, cell, pool, proofs, reference)
        results += run.write(rows)
    return results


def _rows_of(
    run: Run,
    cell: Cell,
    pool: select_data.Pool,
    proofs: dict[tuple[int, int, str], Proof],
    reference: dict[tuple[int, int, int, str], float],
) -> list[dict[str, Any]]:
    def work() -> dict[str, Any]:
        key = cell.rows, cell.n, cell.data
        if key not in proofs:
            proofs.clear()  # of the cells before, with their data
            if cell.data == "random":
                tensor = pool.view(cell.rows, cell.n)
            else:
                tensor = select_data.make(cell.data, cell.rows, cell.n, "float32", run.device.kind)
            proofs[key] = Proof(tensor, min(cell.n, LARGEST_K))
        return {"rows": judged_rows(run, cell, proofs[key].narrowed(cell.k), reference)}

    found = run.guarded(f"{cell.rows} x {cell.n}, k = {cell.k}, {cell.data}", work)
    rows: list[dict[str, Any]] = found["rows"] if "rows" in found else [_left_out(cell, found["note"])]
    return rows


def _left_out(cell: Cell, note: str) -> dict[str, Any]:
    shape = {"rows": cell.rows, "n": cell.n, "k": cell.k, "dtype": "float32", "data": cell.data}
    return {"mode": MODE, "method": "auto", "note": note, **shape}


def judged_rows(
    run: Run, cell: Cell, proof: Proof, reference: dict[tuple[int, int, int, str], float]
) -> list[dict[str, Any]]:
    """Prove, time and judge one cell: a row for each treatment of NaN and each peer or other bar.

    ``reference`` holds the seconds on random data by (rows, n, k, nan), and learns this cell's if it is random.
    """
    device, tensor = run.device, proof.tensor
    calls = {nan: run.call(tensor, cell.k, "auto", {}, nan) for nan in ("refuse", "last")}
    if device.kind == "cuda":
        calls["graph"] = device.replay(calls["last"])
    for call in calls.values():
        verified = proof.check(call())
    names = PEERS_OF[device.kind]
    for name in names:
        calls[name] = run.call(tensor, cell.k, name, {}, "last")
        proof.check_values(calls[name]()[0])
    timings = take_turns(device, calls, seconds=SECONDS[device.kind], settle=True)
    rows = []
    for nan in NANS_OF[device.kind]:
        key = (cell.rows, cell.n, cell.k, nan)
        ours = timings[nan].median
        if cell.data == "random":
            reference[key] = ours
        speed = run.speed(timings[nan], tensor.nbytes)
        shared = case_columns(MODE, proof, "auto", {}, data=cell.data, nan=nan) | speed | {"verified": verified}
        ratios = {name: timings[name].median / ours for name in names}
        if cell.data != "random" and key in reference:
            ratios["random"] = reference[key] / ours
        measured = {"GB/s": speed["gbps"], "read": speed["fraction_read"], **ratios}
        for on in dict.fromkeys([*names, *cell.bars]):
            bar = cell.bars.get(on)
            judged = bar is not None and on in measured
            rows.append(
                shared
                | {
                    "peer": on if on in PEERS else None,
                    "peer_seconds": timings[on].median if on in PEERS else None,
                    "ratio": ratios.get(on),
                    "bar_on": on if judged else None,
                    "bar": bar if judged else None,
                    "passed": measured[on] >= bar if judged else None,
                }
            )
    return rows


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """The rows as aligned text, and how many bars were met."""
    lines = [("rows", "n", "k", "data", "nan", "ms", "spread", "GB/s", "of read", "against", "ratio", "bar", "")]
    for row in rows:
        what = (f"{row['rows']}", f"{row['n']}", f"{row['k']}", row["data"])
        if row.get("note"):
            lines.append((*what, "", "", "", "", "", row["note"], "", "", ""))
            continue
        spread = (row["seconds_max"] - row["seconds_min"]) / row["seconds_median"]
        lines.append(
            (
                *what,
                row["nan"],
                f"{row['seconds_median'] * 1e3:.4g}",
                f"{spread:.0%}",
                f"{row['gbps']:.4g}",
                f"{row['fraction_read']:.0%}",
                row["peer"] or row["bar_on"],
                "" if row["ratio"] is None else f"{row['ratio']:.2f}x",
                "" if row["bar"] is None else f"{row['bar']:.3g}",
                "" if row["passed"] is None else "pass" if row["passed"] else "MISS",
            )
        )
    judged = [row["passed"] for row in rows if row.get("passed") is not None]
    return report.aligned(lines) + f"\n{sum(judged)} of {len(judged)} bars met"
