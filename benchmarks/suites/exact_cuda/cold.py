"""The first search on a machine: a new process in which Triton has compiled nothing yet.

Each repeat is a process (cold_child.py) with its own empty cache. Before the clock starts, its rows are on the device
and torch has run. Modules are imported from bytecode, as those of an installed package are: the first repeat may write
it. The calling process proves the result; for a graph by NN-Descent (a case with a target), it measures the recall.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from ...harness.case import Case, FirstCalls
from ...harness.device import timing_of
from ...harness.proof.neighbors import PROOF, Answer
from ...harness.run import Run, seconds_of
from . import search
from .search import load, proof_of

REPEATS = 3
CHILD = "benchmarks.suites.exact_cuda.cold_child"


def cold_start(run: Run, case: Case) -> None:
    """Time the first call in a process without compiled kernels: once compiled by all threads, once by one thread."""
    proof = proof_of(run, case, load(run, case))

    def fact(who: str, repeats: int, **environment: str) -> dict[str, Any]:
        calls = [first_call(run, case, environment) for _ in range(repeats)]
        if case.target:
            recall, proved = min(proof.recall(told["answer"].indices, case.k) for told in calls)
            shown = {"proved": proved, "recall": recall}
        else:
            proved = run.prove(lambda: min(proof.check(told["answer"], case.k) for told in calls))
            shown = {"proof": PROOF, "proved": proved, "recall": 1.0}
        timing = seconds_of(timing_of([told["seconds"] for told in calls]))
        extras = {name: calls[-1][name] for name in ("levels", "kernels", "again")}
        return {"who": who, **shown, **timing, "extras": extras}

    facts = fact("tonari, first call", REPEATS)
    verdicts = run.verdicts(case.bars, {"seconds": facts["seconds_median"]})
    one = fact("tonari, kernels one by one", 1, TONARI_NUM_THREADS="1")
    run.write(case, [*(facts | verdict for verdict in verdicts), one])


def workload(run: Run, case: Case) -> Callable[[], Any] | FirstCalls:
    """Return the work of a case; comparisons of two versions time it."""
    if case.work is cold_start:
        return FirstCalls(lambda: first_call(run, case, {}))
    return search.workload(run, case)


def first_call(run: Run, case: Case, given: dict[str, str]) -> dict[str, Any]:
    """Run a fresh process; return the seconds of its first and of its second call, and the first call's result."""
    import torch

    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "answer.npz"
        sizes = [case.data, case.n, case.m, case.d, case.k]
        asked = json.dumps([*sizes, case.graph, case.prepared, case.target, run.where, str(out)])
        fresh = {"TRITON_CACHE_DIR": str(Path(folder) / "triton"), "PYTHONDONTWRITEBYTECODE": ""}
        environment = os.environ | fresh | given
        command = [sys.executable, "-m", CHILD, asked]
        ran = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
        told: dict[str, Any] = json.loads(ran.stdout.splitlines()[-1])
        with np.load(out) as found:
            told["answer"] = Answer(*(torch.as_tensor(found[name], device=run.where) for name in Answer._fields))
    return told
