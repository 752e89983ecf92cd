"""The first search of a machine: a fresh process whose Triton has compiled nothing yet.

Each repeat is a process (cold_child.py) with an empty cache of its own. Its rows are on the device, and torch has run,
before the clock starts; what it returns is proved here.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from ...harness.case import Case
from ...harness.device import timing_of
from ...harness.proof.neighbors import PROOF, Answer
from ...harness.run import Run, seconds_of
from .search import load, proof_of

REPEATS = 3
CHILD = "benchmarks.suites.exact_cuda.cold_child"


def cold_start(run: Run, case: Case) -> None:
    """The first call in a fresh process, with nothing compiled; the median of some processes."""
    proof = proof_of(run, case, load(run, case))
    calls = [first_call(run, case) for _ in range(REPEATS)]
    timing = timing_of([told["seconds"] for told in calls])
    proved = run.prove(lambda: min(proof.check(told["answer"], case.k) for told in calls))
    facts: dict[str, Any] = {"who": "tonari, first call", "proof": PROOF, "proved": proved, "recall": 1.0}
    facts |= seconds_of(timing) | {"extras": {name: calls[-1][name] for name in ("levels", "compiled_there", "again")}}
    run.write(case, [facts | verdict for verdict in run.verdicts(case.bars, {"seconds": timing.median})])


def first_call(run: Run, case: Case) -> dict[str, Any]:
    """Seconds of a first call, of the call after it, and what the first one returned."""
    import torch

    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "answer.npz"
        asked = json.dumps([case.data, case.n, case.m, case.d, case.k, run.where, str(out)])
        environment = os.environ | {"TRITON_CACHE_DIR": str(Path(folder) / "triton")}
        command = [sys.executable, "-m", CHILD, asked]
        ran = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
        told: dict[str, Any] = json.loads(ran.stdout.splitlines()[-1])
        with np.load(out) as found:
            told["answer"] = Answer(*(torch.as_tensor(found[name], device=run.where) for name in Answer._fields))
    return told
