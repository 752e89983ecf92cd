"""Programs that compile kernels for a GPU on machines without one, beginning with an empty cache of kernels."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

# The beginning of each program: it defines the kernel launches of a search on a GPU that this machine may lack.
_BEGIN = """
import json, logging, os
logging.basicConfig(level=logging.INFO)
import torch
from triton.runtime import driver
from tests.helpers import plans
from tests.helpers.target_alone import TargetAlone
from tonari.cuda.compiling import ahead
from tonari.cuda.compiling import beginning, compile, effort, loading
from tonari.cuda.compiling.compile import compile_call, is_compiled
from tonari.cuda.compiling.rehearsal import Card, rehearsing
from tonari.exact.cuda.attempts.rehearse import rehearse_search

driver.set_active(TargetAlone())
card = Card((9, 0), 132)

def stage():
    plan = plans.exact_cuda(1000, 6, 8, 3, metric="l1", devices=("cuda:0",), free_bytes=10**10)
    rehearse_search(plan, "float32", self_join=False)

def calls():
    with rehearsing(card) as rehearsal:
        stage()
    return list(rehearsal.calls.values())
"""


def run(more: str, cache: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run `_BEGIN` followed by `more` in a new process, with this folder as the cache of compiled kernels."""
    told = os.environ | {"TRITON_CACHE_DIR": str(cache), "TONARI_NUM_THREADS": "2"} | environment
    told.pop("TRITON_INTERPRET", None)
    return subprocess.run(
        [sys.executable, "-c", _BEGIN + more], env=told, capture_output=True, text=True, timeout=300, check=False
    )
