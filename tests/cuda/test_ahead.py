"""Kernels compiled ahead, in processes: which, where they end up, and what happens when that fails or is interrupted.

There need not be a GPU: kernels are compiled for one all the same, in processes of their own with an empty cache.
"""

from __future__ import annotations

import json
import os
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
    from tonari.cuda import ahead, compile_client, compile_server
    from tonari.cuda.pickling import dump_call, load_call
    from tonari.cuda.rehearsal import Call

# Plans for a GPU, and compiles for it without one; `more` is what the test does.
_BEGIN = """
import json, logging, os, sys
logging.basicConfig(level=logging.INFO)
import torch
from triton.runtime import driver
from tests.helpers import plans
from tonari.cuda import ahead, compile_client
from tonari.cuda.compile import is_compiled
from tonari.cuda.compile_server import TargetAlone
from tonari.cuda.rehearsal import Card, rehearsing
from tonari.exact.cuda.rehearse import rehearse_search

driver.set_active(TargetAlone(("cuda", 90, 32)))
card = Card((9, 0), 132)
metric = "l1"

def stage():
    plan = plans.exact_cuda(1000, 6, 8, 3, metric=metric, devices=("cuda:0",), free_bytes=10**10)
    rehearse_search(plan, "float32", self_join=False)

def calls():
    with rehearsing(card) as rehearsal:
        stage()
    return list(rehearsal.calls.values())
"""


def run(more: str, cache: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    told = os.environ | {"TRITON_CACHE_DIR": str(cache), "TONARI_NUM_THREADS": "2"} | environment
    told.pop("TRITON_INTERPRET", None)
    return subprocess.run(
        [sys.executable, "-c", _BEGIN + more], env=told, capture_output=True, text=True, timeout=300, check=False
    )


def servers(cache: Path) -> set[int]:
    """Processes that compile into a cache."""
    found = set()
    for path in Path("/proc").glob("[0-9]*"):
        try:
            command, environment = (path / "cmdline").read_bytes(), (path / "environ").read_bytes()
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue
        if b"tonari.cuda.compile_server" in command and str(cache).encode() in environment:
            found.add(int(path.name))
    return found


@pytest.mark.process
def test_what_is_compiled_ahead_is_found_by_other_processes(tmp_path: Path) -> None:
    ran = run(
        """
count = ahead.compile_ahead(stage, card)
names = sorted(call.name for call in calls())
print(json.dumps([count, names, [is_compiled(call) for call in calls()]]))
""",
        tmp_path,
    )
    count, names, found = json.loads(ran.stdout)
    assert count == len(names) > 5
    assert {"screen_elementwise_kernel", "bitonic_kernel"} <= set(names)
    assert all(found)
    assert "WARNING" not in ran.stderr
    assert f"{count} kernels are compiled, by 2 processes" in ran.stderr
    again = run("print(ahead.compile_ahead(stage, card), [is_compiled(call) for call in calls()])", tmp_path)
    assert again.stdout.strip() == f"0 {[True] * count}"
    assert not servers(tmp_path)


@pytest.mark.process
def test_is_compiled_compiles_nothing(tmp_path: Path) -> None:
    ran = run(
        """
from triton import knobs
seen = []
knobs.compilation.listener = lambda *, src, cache_hit, **_: seen.append(cache_hit)
call = calls()[0]
print(is_compiled(call), is_compiled(call), seen)
ahead.compile_call(call)
print(is_compiled(call), seen)
""",
        tmp_path,
    )
    assert ran.stdout.split("\n")[:2] == ["False False []", "True [False]"], ran.stderr


@pytest.mark.process
def test_one_kernel_that_fails_is_reported_and_the_others_compiled(tmp_path: Path) -> None:
    ran = run(
        """
usual = compile_client.dump_call
def spoilt(call):
    import dataclasses
    if call.name == "widen_kernel":
        call = dataclasses.replace(call, options=call.options | {"num_warps": 3})
    return usual(call)
compile_client.dump_call = spoilt
count = ahead.compile_ahead(stage, card)
print(count, len(calls()), sorted(call.name for call in calls() if not is_compiled(call)))
""",
        tmp_path,
    )
    count, known, name = ran.stdout.split()
    assert (count, name) == (known, "['widen_kernel']"), ran.stderr
    assert f"WARNING:tonari:1 of {count} kernels could not be compiled ahead, and are compiled when" in ran.stderr
    assert "launched; widen_kernel: " in ran.stderr


@pytest.mark.process
def test_a_process_that_dies_is_reported_and_the_search_goes_on(tmp_path: Path) -> None:
    ran = run(
        """
import signal, threading
usual = compile_client.Server.compile
def compile(server, *given):
    threading.Timer(1, lambda: os.killpg(server._process.pid, signal.SIGKILL)).start()
    usual(server, *given)
compile_client.Server.compile = compile
print(ahead.compile_ahead(stage, card))
""",
        tmp_path,
    )
    assert int(ran.stdout) > 5, ran.stderr
    assert "kernels could not be compiled ahead, and are compiled when they are launched" in ran.stderr
    assert "the process that compiled it has ended" in ran.stderr


@pytest.mark.process
def test_what_keeps_the_process_from_starting_is_reported(tmp_path: Path) -> None:
    ran = run(
        """
sys.executable = "/bin/false"
print(ahead.compile_ahead(stage, card))
""",
        tmp_path,
    )
    count = int(ran.stdout)
    assert f"WARNING:tonari:{count} of {count} kernels could not be compiled ahead" in ran.stderr


@pytest.mark.process
def test_a_program_that_compiles_nothing_imports_little() -> None:
    """Not even what starts processes."""
    told = "import sys, tonari; print({'subprocess', 'multiprocessing', 'tempfile', 'torch'} & set(sys.modules))"
    ran = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True)
    assert ran.stdout == "set()\n"


@pytest.mark.process
def test_a_rehearsal_that_fails_is_reported_and_the_search_goes_on(tmp_path: Path) -> None:
    ran = run(
        """
def spoilt():
    raise NotImplementedError("an operation that the device 'meta' lacks")
ahead.card_of = lambda device: card
call = calls()[0]
with ahead.expecting(spoilt):
    ahead.prepare_for(call, "cuda:0")
    ahead.prepare_for(call, "cuda:0")
print("goes on")
""",
        tmp_path,
    )
    assert ran.stdout.strip() == "goes on", ran.stderr
    assert ran.stderr.count("WARNING:tonari:kernels cannot be compiled ahead, and are compiled one by one") == 1
    assert "NotImplementedError: an operation" in ran.stderr
    assert not servers(tmp_path)


@pytest.mark.process
@pytest.mark.parametrize("how", ["SIGINT", "SIGKILL"])
def test_no_process_is_left_behind(how: str, tmp_path: Path) -> None:
    """After Ctrl-C while kernels are compiled, and after a death that runs no code."""
    ran = run(
        f"""
import signal, threading
metric = "euclidean"  # takes the longest
usual = compile_client.Server.compile
def compile(server, *given):
    print(server._process.pid, flush=True)
    threading.Timer(1.5, lambda: os.kill(os.getpid(), signal.{how})).start()
    usual(server, *given)
compile_client.Server.compile = compile
ahead.compile_ahead(stage, card)
print("not interrupted")
""",
        tmp_path,
    )
    assert int(ran.stdout) > 0
    assert ("KeyboardInterrupt" in ran.stderr) == (how == "SIGINT")
    patience = time.monotonic() + 4
    while servers(tmp_path) and time.monotonic() < patience:
        time.sleep(0.05)
    assert not servers(tmp_path)


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


def test_a_launch_that_nobody_expects_asks_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its kernel is compiled where it is launched; no process is started."""
    for name in ("can_fork", "is_compiled", "compile_ahead"):
        monkeypatch.setattr(ahead, name, lambda *given: pytest.fail("asked"))
    ahead.prepare_for(Call(None, {}, {}, {}, ("a variant",)), "cuda:0")


def test_only_a_kernel_that_has_to_be_compiled_starts_a_rehearsal(monkeypatch: pytest.MonkeyPatch) -> None:
    from tonari.cuda.rehearsal import Card

    asked: list[Any] = []
    monkeypatch.setattr(ahead, "card_of", lambda device: Card((9, 0), 132))
    monkeypatch.setattr(ahead, "can_fork", lambda: True)
    monkeypatch.setattr(ahead, "is_compiled", lambda call: call.variant == ("known",))
    monkeypatch.setattr(ahead, "compile_ahead", lambda stage, card, progress: asked.append((stage, progress)))
    known, new = (Call(None, {}, {}, {}, (name,)) for name in ("known", "new"))
    with ahead.expecting(list, True):
        ahead.prepare_for(known, "cuda:0")
        assert asked == []
        ahead.prepare_for(new, "cuda:0")
        ahead.prepare_for(new, "cuda:0")  # once is enough
        with ahead.expecting(dict):  # such as retries
            ahead.prepare_for(new, "cuda:0")
    ahead.prepare_for(new, "cuda:0")
    assert asked == [(list, True), (dict, True)]


def test_one_processor_compiles_where_it_launches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TONARI_NUM_THREADS", "1")
    monkeypatch.setattr(compile_client, "Server", lambda: pytest.fail("started"))
    assert not ahead.can_fork()
    monkeypatch.setattr(ahead, "is_compiled", lambda call: pytest.fail("asked"))
    with ahead.expecting(lambda: pytest.fail("rehearsed")):
        ahead.prepare_for(Call(None, {}, {}, {}, ("new",)), "cuda:0")


def test_the_process_says_what_went_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    def build(call: bytes) -> None:
        raise ValueError("x" * 9000)

    monkeypatch.setattr(compile_server, "build", build)
    reading, writing = os.pipe()
    compile_server.work(1, b"", writing)
    said = os.read(reading, 1 << 16)
    os.close(reading)
    os.close(writing)
    number, error = json.loads(said)
    assert number == 1
    assert error.startswith("ValueError: xxx")
    assert len(said) < 4096  # what a pipe takes in one piece


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
