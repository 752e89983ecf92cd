"""The bars for the speed of ``tonari.select_k``: float32, sorted, with indices, method "auto".

A bar is for one of these quantities, and is met if the measured value is at least the bar:

==============  ==================================================================
``GB/s``        bytes of input over seconds
``read``        the same over the rate at which this machine reads
``torch.topk``  its seconds over ours, in the same rounds (likewise ``numpy``, and
                ``numpy-values``, which selects no columns)
``random``      seconds on random data of the same shape over seconds on this data
==============  ==================================================================

Both ``nan="refuse"``, the default, and ``nan="last"``, which never makes the host wait for a GPU, are timed and judged.
On a GPU, "graph" is timed too: a call with ``nan="last"`` replayed from a CUDA graph, without the work of the host.
Bars were set for an H100, and for two threads of a CPU: other machines are recorded without a verdict.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ...harness.case import Bar, Case
from ...harness.datasets import selections
from ...harness.device import take_turns
from ...harness.proof.selection import PROOF, Proof
from ...harness.rows import Row
from ...harness.run import Run, seconds_of
from .measure import call_of, columns, speed, tried

NANS_OF = {"cuda": ("refuse", "last", "graph"), "cpu": ("refuse", "last")}
ADVERSE = ("leading", "ascending", "descending", "equal")
WITHIN = 1 / 1.5
LARGEST_K = 2048
# Seconds that are spent on timing each full-size case.
SECONDS = {"cuda": 0.4, "cpu": 15.0}
PEERS_OF = {"cuda": ("torch.topk",), "cpu": ("torch.topk", "numpy")}
SHORT = ("numpy", "numpy-values")
HOME = {"cuda": "H100", "cpu": ""}


def _case(
    device: str,
    rows: int,
    n: int,
    k: int,
    bars: dict[str, float],
    data: str = "random",
    peers: tuple[str, ...] | None = None,
) -> Case:
    name = f"bars-{rows}x{n}-k{k}" + ("" if data == "random" else f"-{data}")
    held = tuple(Bar(on, bound, home=HOME[device]) for on, bound in bars.items())
    cost = 3 * SECONDS[device] if device == "cpu" else 3.0
    peers = PEERS_OF[device] if peers is None else peers
    return Case(name, device, n, rows, 0, k, work=judge, data=data, bars=held, peers=peers, cost=cost, metric="")


def cases() -> Iterator[Case]:
    """Return the cases with bars, for an H100 and for two CPU threads; the first case of each shape has random data."""
    for n in (2**15, 2**17, 2**20):
        for rows in (2**11, 2**12, 2**13):
            for k in (10, 64, 256):
                yield _case("cuda", rows, n, k, {"GB/s": 1800, "torch.topk": 5})
            for k in (512, 1024, 2048):
                yield _case("cuda", rows, n, k, {"GB/s": 1000})
    for rows in (1, 4, 16):
        for k in (10, 64, 256, 1024):
            yield _case("cuda", rows, 2**24, k, {"GB/s": 1500, "torch.topk": 2})
    for n in (2**10, 2**11, 2**12, 2**13):
        for k in (10, 32, 64):
            yield _case("cuda", 2**13, n, k, {"torch.topk": 2})
    for data in ADVERSE:
        yield _case("cuda", 2**12, 2**17, 64, {"random": WITHIN}, data)
    for k in (32, 64, 128, 256, 512, 1024):
        read = {"read": 0.5} if k <= 64 else {}
        yield _case("cpu", 2**13, 2**15, k, {"numpy": 5, "torch.topk": 2, **read})
    for data in ADVERSE:
        yield _case("cpu", 2**13, 2**15, 64, {"random": WITHIN}, data)
    for rows, n, k in ((100_000, 50, 10), (1_000_000, 20, 5)):
        yield _case("cpu", rows, n, k, {"numpy-values": 1.25}, peers=SHORT)


def proof_of(run: Run, case: Case) -> Proof:
    """Return the true selection of a case's rows, which successive cases of one shape share."""

    def make() -> Proof:
        tensor = selections.make(case.data, case.m, case.n, case.dtype, run.device.kind)
        return Proof(tensor, min(case.n, LARGEST_K))

    found: Proof = run.keep(("selection", case.m, case.n, case.data), make)
    return found.narrowed(case.k)


def workload(run: Run, case: Case) -> Callable[[], Any]:
    """Return a function that makes the selection of a case; comparisons of two versions time it."""
    return call_of(run, proof_of(run, case).tensor, case.k, "auto", {}, "last")


def judge(run: Run, case: Case) -> None:
    """Verify and time the selection of a case and its peers, and write rows with verdicts on the bars."""
    if 4 * case.m * case.n > run.device.memory():
        run.write(case, [{"who": "tonari", "note": "larger than half of the memory"}])
        return
    found = tried(run, case.name, lambda: {"rows": judged_rows(run, case, proof_of(run, case))})
    run.write(case, found["rows"] if "rows" in found else [{"who": "tonari"} | found])


def judged_rows(run: Run, case: Case, proof: Proof) -> list[Row]:
    """Return a row of tonari for each treatment of NaN and each bar, and a row for each peer.

    ``run.remembered`` maps (rows, n, k, nan) to the seconds on random data; a case with random data adds its own.
    """
    device, tensor = run.device, proof.tensor
    calls = {nan: call_of(run, tensor, case.k, "auto", {}, nan) for nan in ("refuse", "last")}
    if device.kind == "cuda":
        calls["graph"] = device.replay(calls["last"])
    for call in calls.values():
        proved = proof.check(call())
    names = [name for name in case.peers if run.wants(name)]
    for name in names:
        calls[name] = call_of(run, tensor, case.k, name, {}, "last")
        proof.check_values(calls[name]()[0])
    timings = take_turns(device, calls, seconds=run.scale * SECONDS[device.kind], settle=True)
    found: list[Row] = []
    for nan in NANS_OF[device.kind]:
        key = (case.m, case.n, case.k, nan)
        ours = timings[nan].median
        if case.data == "random":
            run.remembered[key] = ours
        fast = speed(run, timings[nan], tensor.nbytes)
        shared = columns(proof, "auto", {}, data=case.data, nan=nan) | fast | {"proof": PROOF, "proved": proved}
        extras = fast["extras"]
        measured = {"GB/s": extras["gbps"], "read": extras["gbps"] / extras["read_gbps"]}
        measured |= {name: timings[name].median / ours for name in names}
        if case.data != "random" and key in run.remembered:
            measured["random"] = run.remembered[key] / ours
        found += [shared | verdict for verdict in run.verdicts(case.bars, measured)]
    return found + [{"who": name} | seconds_of(timings[name]) for name in names]
