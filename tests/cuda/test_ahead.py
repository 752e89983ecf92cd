"""Kernels compiled ahead, in processes: which, where they end up, and what happens when that fails or is interrupted.

There need not be a GPU: kernels are compiled for one all the same, in processes of their own with an empty cache.
"""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import tonari
from tests.helpers.devices import HAS_TORCH, needs_torch, on_gpu

pytestmark = needs_torch
if HAS_TORCH:
    from tonari.cuda import ahead, compile_server
    from tonari.cuda.pickling import dump_call, load_call
    from tonari.cuda.rehearsal import Call

# Plans for a GPU, and compiles for it without one; `more` is what the test does.
_BEGIN = """
import json, logging, os, sys
logging.basicConfig(level=logging.INFO)
import torch
from triton.runtime import driver
from tests.helpers import plans
from tonari.cuda import ahead
from tonari.cuda.compile import is_compiled
from tonari.cuda.compile_server import TargetAlone
from tonari.cuda.rehearsal import Card, rehearsing
from tonari.exact.cuda.rehearse import stages_of

driver.set_active(TargetAlone(("cuda", 90, 32)))
card = Card((9, 0), 132)
plan = plans.exact_cuda(1000, 6, 8, 3, metric="l1", devices=("cuda:0",), free_bytes=10**10)
stages = lambda: stages_of(plan, "float32", self_join=False)[:1]

def calls():
    with rehearsing(card) as rehearsal:
        stages()[0]()
    return list(rehearsal.calls.values())
"""


def run(more: str, cache: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    told = os.environ | {"TRITON_CACHE_DIR": str(cache), "TONARI_NUM_THREADS": "2"} | environment
    told.pop("TRITON_INTERPRET", None)
    return subprocess.run(
        [sys.executable, "-c", _BEGIN + more], env=told, capture_output=True, text=True, timeout=300, check=False
    )


def servers() -> set[int]:
    """Processes that compile."""
    found = set()
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = path.read_bytes()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if b"tonari.cuda.compile_server" in command:
            found.add(int(path.parent.name))
    return found


@pytest.mark.process
def test_what_is_compiled_ahead_is_found_by_other_processes(tmp_path: Path) -> None:
    before = servers()
    ran = run(
        """
batch = ahead.compile_ahead(stages, card)
batch.wait()
names = sorted(call.name for call in calls())
print(json.dumps([batch.count, names, [is_compiled(call) for call in calls()], ahead.Batch.any()]))
""",
        tmp_path,
    )
    count, names, found, left = json.loads(ran.stdout)
    assert count == len(names) > 5
    assert {"screen_elementwise_kernel", "bitonic_kernel"} <= set(names)
    assert all(found)
    assert not left
    assert "WARNING" not in ran.stderr
    assert f"{count} kernels are compiled, by 2 processes" in ran.stderr
    again = run("print(ahead.compile_ahead(stages, card), [is_compiled(call) for call in calls()])", tmp_path)
    assert again.stdout.strip() == f"None {[True] * count}"
    assert servers() <= before


@pytest.mark.process
def test_one_kernel_that_fails_is_reported_and_the_others_compiled(tmp_path: Path) -> None:
    ran = run(
        """
usual = ahead.dump_call
def spoilt(call):
    import dataclasses
    if call.name == "widen_kernel":
        call = dataclasses.replace(call, options=call.options | {"num_warps": 3})
    return usual(call)
ahead.dump_call = spoilt
batch = ahead.compile_ahead(stages, card)
for call in calls():
    batch.wait(call)
print(sorted(call.name for call in calls() if not is_compiled(call)))
""",
        tmp_path,
    )
    assert ran.stdout.strip() == "['widen_kernel']", ran.stderr
    assert "WARNING:tonari:widen_kernel is compiled where it is needed: ahead of that, " in ran.stderr


@pytest.mark.process
def test_a_process_that_dies_is_reported_and_the_search_goes_on(tmp_path: Path) -> None:
    ran = run(
        """
import signal
batch = ahead.compile_ahead(stages, card)
os.killpg(batch._process.pid, signal.SIGKILL)
batch.wait()
print(ahead.Batch.any())
""",
        tmp_path,
    )
    assert ran.stdout.strip() == "False", ran.stderr
    assert "WARNING:tonari:kernels are compiled one by one: the process for that ended with status -9" in ran.stderr


@pytest.mark.process
def test_a_rehearsal_that_fails_is_reported_and_the_search_goes_on(tmp_path: Path) -> None:
    ran = run(
        """
def stages():
    raise NotImplementedError("an operation that the device 'meta' lacks")
print(ahead.compile_ahead(stages, card), ahead._open)
""",
        tmp_path,
    )
    assert ran.stdout.strip() == "None []", ran.stderr
    assert "WARNING:tonari:kernels cannot be compiled ahead, and are compiled one by one" in ran.stderr
    assert "NotImplementedError: an operation" in ran.stderr


@pytest.mark.process
@pytest.mark.parametrize("how", ["interrupted", "exit", "killed"])
def test_no_process_is_left_behind(how: str, tmp_path: Path) -> None:
    """After Ctrl-C during a wait, after the end of the program, and after a death that runs no code."""
    ends = {"interrupted": "signal.SIGINT", "killed": "signal.SIGKILL"}
    before = servers()
    ran = run(
        f"""
import signal, threading
batch = ahead.compile_ahead(stages, card)
print(batch._process.pid, flush=True)
if {how!r} != "exit":
    threading.Timer(1, lambda: os.kill(os.getpid(), {ends.get(how)})).start()
    batch.wait()
""",
        tmp_path,
    )
    assert int(ran.stdout) > 0
    assert ("KeyboardInterrupt" in ran.stderr) == (how == "interrupted")
    patience = time.monotonic() + 10
    while servers() - before and time.monotonic() < patience:
        time.sleep(0.05)
    assert servers() - before == set()


def test_calls_as_bytes() -> None:
    from tonari.cuda.stand_ins import TensorStandIn, stand_in
    from tonari.metrics import cuda_terms, get_metric
    from tonari.select.cuda.kernels.order import decode_kernel

    row = launching_row()
    constants = {"METRIC": get_metric("l1"), "TERM": cuda_terms("l1").term}
    call = Call(decode_kernel, {"keys_ptr": stand_in(row), "n": 3, "x": None}, constants, {"num_warps": 4}, (1,))
    made = load_call(dump_call(call))
    assert made.kernel is decode_kernel
    assert made.constants == constants
    assert made.arguments == call.arguments
    assert isinstance(made.arguments["keys_ptr"], TensorStandIn)
    assert str(made.arguments["keys_ptr"].dtype) == str(row.dtype)


def launching_row() -> Any:
    import torch

    return torch.zeros(40, dtype=torch.float32)


def test_a_launch_waits_for_nothing_that_nobody_expects(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a rehearsal a kernel is compiled where it is launched; no process is started."""
    monkeypatch.setattr(ahead, "card_of", lambda device: pytest.fail("asked for the device"))
    ahead.ready(Call(None, {}, {}, {}, ("a variant",)), "cuda:0")


def test_only_a_kernel_that_has_to_be_compiled_starts_a_rehearsal(monkeypatch: pytest.MonkeyPatch) -> None:
    from tonari.cuda.rehearsal import Card

    asked: list[str] = []
    monkeypatch.setattr(ahead, "card_of", lambda device: Card((9, 0), 132))
    monkeypatch.setattr(ahead, "can_fork", lambda: True)
    monkeypatch.setattr(ahead, "make_key", lambda: None)
    monkeypatch.setattr(ahead, "is_cache_empty", lambda: False)
    monkeypatch.setattr(ahead, "is_compiled", lambda call: call.variant == ("known",))
    monkeypatch.setattr(ahead, "compile_ahead", lambda *given, **options: asked.append("rehearsed"))
    known, new = (Call(None, {}, {}, {}, (name,)) for name in ("known", "new"))
    with ahead.expecting(list):
        ahead.ready(known, "cuda:0")
        assert asked == []
        ahead.ready(new, "cuda:0")
        ahead.ready(new, "cuda:0")  # once is enough
    ahead.ready(new, "cuda:0")
    assert asked == ["rehearsed"]


def test_the_process_says_what_went_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[tuple[int, str | None]] = []
    monkeypatch.setattr(compile_server, "say", lambda number, error: said.append((number, error)))

    def build(call: bytes) -> None:
        raise ValueError("x" * 9000)

    monkeypatch.setattr(compile_server, "build", build)
    orders = pickle.loads(pickle.dumps(compile_server.Orders([b"a", b"b"], 2, ("cuda", 90, 32), 2)))
    compile_server.work(orders, 1)
    ((number, error),) = said
    assert number == 1
    assert error is not None
    assert error.startswith("ValueError: xxx")
    assert len(error) < 4096 - 100  # what a pipe takes in one piece


def test_warming_for_the_cpu_compiles_nothing() -> None:
    assert tonari.warm(100, 10, 4, 3, device="cpu") == 0


_COLD = """
import json, sys, time
import torch, tonari
k = int(sys.argv[1])
points = torch.randn((1_000_000, 128), device="cuda")
queries = torch.randn((10_000, 128), device="cuda")
torch.cuda.synchronize()
from triton import knobs
compiled = []
knobs.compilation.listener = lambda *, src, cache_hit, **_: compiled.append(src.name) if not cache_hit else None
began = time.perf_counter()
count = tonari.warm(1_000_000, 10_000, 128, k) if sys.argv[2] == "warm" else 0
if sys.argv[2] == "cold":
    tonari.search(queries, points, k)
    torch.cuda.synchronize()
print(json.dumps([time.perf_counter() - began, compiled, count]))
if sys.argv[2] == "after":
    tonari.search(queries, points, k)
    print(json.dumps(compiled))
"""


def cold(cache: Path, k: int, how: str) -> list[Any]:
    environment = os.environ | {"TRITON_CACHE_DIR": str(cache)}
    ran = subprocess.run(
        [sys.executable, "-c", _COLD, str(k), how], env=environment, capture_output=True, text=True, check=True
    )
    return [json.loads(line) for line in ran.stdout.splitlines()]


@on_gpu
@pytest.mark.process
@pytest.mark.parametrize("k", [10, 256])
def test_the_first_search_of_a_machine_takes_seconds(k: int, tmp_path: Path) -> None:
    """Nothing that was foreseen is compiled in the process that searches."""
    ((seconds, compiled, _),) = cold(tmp_path, k, "cold")
    assert compiled == []
    assert seconds < 30  # benchmarks hold it to less


@on_gpu
@pytest.mark.process
@pytest.mark.parametrize("k", [10, 256])
def test_after_warming_nothing_is_compiled(k: int, tmp_path: Path) -> None:
    ((_, compiled, count),) = cold(tmp_path, k, "warm")
    assert compiled == []
    assert count > 10
    assert cold(tmp_path, k, "warm")[0][2] == 0
    _, compiled = cold(tmp_path, k, "after")
    assert compiled == []
