"""Programs that compile kernels for a GPU on machines without one, beginning with an empty cache of kernels.

A server imports PyTorch, Triton and tonari once, which takes seconds, and forks a process for every program.
"""

from __future__ import annotations

import atexit
import functools
import json
import os
import subprocess
import sys
from pathlib import Path

# The beginning of each program, which the server runs. It defines the kernel launches of a search on a GPU that this
# machine may lack.
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


# Programs come as lines of JSON: their text, environment and folder for output. Statuses are returned.
_SERVE = """
import signal, sys, traceback
for line in sys.stdin:
    wanted = json.loads(line)
    child = os.fork()
    if child == 0:
        signal.alarm(300)
        for stream, name in ((sys.stdout, "stdout"), (sys.stderr, "stderr")):
            file = os.open(os.path.join(wanted["out"], name), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(file, stream.fileno())
        os.environ.update(wanted["environment"])
        status = 0
        try:
            exec(wanted["program"], globals())
        except BaseException:
            traceback.print_exc()
            status = 1
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    os.write(1, f"{status}\\n".encode())
"""


@functools.cache
def _server() -> subprocess.Popen[str]:
    told = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    server = subprocess.Popen(
        [sys.executable, "-c", _BEGIN + _SERVE],
        env=told | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},  # a fork copies only one thread
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    atexit.register(server.communicate)
    return server


def run(more: str, cache: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run `_BEGIN` followed by `more` in a process, with this folder as the cache of compiled kernels."""
    server, out = _server(), cache.with_name(f"{cache.name}-output")
    out.mkdir(exist_ok=True)
    told = {"TRITON_CACHE_DIR": str(cache), "TONARI_NUM_THREADS": "2"} | environment
    assert server.stdin is not None
    assert server.stdout is not None
    server.stdin.write(json.dumps({"program": more, "environment": told, "out": str(out)}) + "\n")
    server.stdin.flush()
    status = server.stdout.readline()
    assert status, "the server has ended"
    printed = [(out / name).read_text(encoding="utf-8") for name in ("stdout", "stderr")]
    return subprocess.CompletedProcess([more], int(status), *printed)
