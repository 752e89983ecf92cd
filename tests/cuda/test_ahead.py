"""Kernels compiled ahead, by threads: which, where they end up, and what happens when that fails or is interrupted.

There need not be a GPU: kernels are compiled for one all the same, in processes of their own with an empty cache.
"""

from __future__ import annotations

import inspect
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import tonari
from tests.helpers.devices import HAS_TORCH, needs_torch, on_gpu

pytestmark = needs_torch
if HAS_TORCH:
    from tonari.cuda import ahead
    from tonari.cuda.rehearsal import Call

# Plans for a GPU, and compiles for it without one; `more` is what the test does.
_BEGIN = """
import json, logging, os
logging.basicConfig(level=logging.INFO)
import torch
from triton.runtime import driver
from tests.helpers import plans
from tests.helpers.target_alone import TargetAlone
from tonari.cuda import ahead, compile
from tonari.cuda.compile import compile_call, is_compiled
from tonari.cuda.rehearsal import Card, rehearsing
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
    told = os.environ | {"TRITON_CACHE_DIR": str(cache), "TONARI_NUM_THREADS": "2"} | environment
    told.pop("TRITON_INTERPRET", None)
    return subprocess.run(
        [sys.executable, "-c", _BEGIN + more], env=told, capture_output=True, text=True, timeout=300, check=False
    )


@pytest.mark.process
def test_what_is_compiled_ahead_is_loaded_and_found_by_other_processes(tmp_path: Path) -> None:
    ran = run(
        """
count = ahead.compile_ahead(stage, card)
names = sorted(call.name for call in calls())
print(json.dumps([count, names, sorted(driver.active.loaded), [is_compiled(call) for call in calls()]]))
""",
        tmp_path,
    )
    count, names, loaded, found = json.loads(ran.stdout)
    assert count == len(names) > 5
    assert loaded == names
    assert {"screen_elementwise_kernel", "bitonic_kernel"} <= set(names)
    assert all(found)
    assert "WARNING" not in ran.stderr
    assert f"{count} kernels are compiled, by 2 threads" in ran.stderr
    again = run("print(ahead.compile_ahead(stage, card), [is_compiled(call) for call in calls()])", tmp_path)
    assert again.stdout.strip() == f"0 {[True] * count}"


@pytest.mark.full  # compiles for several seconds
@pytest.mark.process
def test_several_are_compiled_at_once(tmp_path: Path) -> None:
    """Passes of the compiler do not hold the interpreter's lock, so threads are in them together."""
    ran = run(
        """
import threading, time
from triton.backends.nvidia.compiler import CUDABackend
usual, inside, most = CUDABackend.make_llir, set(), 0
def make_llir(*given):
    global most
    inside.add(threading.get_ident())
    most = max(most, len(inside))
    time.sleep(0.2)
    try:
        return usual(*given)
    finally:
        inside.discard(threading.get_ident())
CUDABackend.make_llir = make_llir
ahead.compile_ahead(stage, card)
print(most)
""",
        tmp_path,
    )
    assert ran.stdout.strip() == "2", ran.stderr


@pytest.mark.full  # compiles for several seconds
@pytest.mark.process
def test_kernels_are_translated_one_at_a_time_the_longest_first(tmp_path: Path) -> None:
    """Translating holds the interpreter's lock."""
    ran = run(
        """
import threading, time
from triton.compiler import ASTSource
usual, order, inside, most = ASTSource.make_ir, [], set(), 0
def make_ir(source, *given, **named):
    global most
    order.append(source.fn.__name__)
    inside.add(threading.get_ident())
    most = max(most, len(inside))
    time.sleep(0.05)
    try:
        return usual(source, *given, **named)
    finally:
        inside.discard(threading.get_ident())
ASTSource.make_ir = make_ir
ahead.compile_ahead(stage, card)
print(json.dumps([order, [call.name for call in sorted(calls(), key=compile._effort, reverse=True)], most]))
""",
        tmp_path,
        TONARI_NUM_THREADS="4",
    )
    order, expected, most = json.loads(ran.stdout)
    assert order == expected, ran.stderr
    assert most == 1


@pytest.mark.process
def test_what_is_unrolled_the_most_takes_the_longest(tmp_path: Path) -> None:
    """Networks that are unrolled, and the screen on Hopper, are those that take a second or more."""
    ran = run(
        """
def longest(k):
    plan = plans.exact_cuda(10**6, 10**4, 128, k, devices=("cuda:0",), free_bytes=10**11)
    with rehearsing(card) as rehearsal:
        rehearse_search(plan, "float32", self_join=False)
    calls = sorted(rehearsal.calls.values(), key=compile._effort, reverse=True)
    # refine_kernel counts the code of all metrics, of which one is compiled: it may begin too early, at little cost.
    return [(call.name, call.constants.get("SIZE")) for call in calls if call.name != "refine_kernel"]
print(json.dumps([longest(10), longest(256)[:3]]))
""",
        tmp_path,
    )
    few, many = json.loads(ran.stdout)
    assert few[:2] == [["screen_hopper_kernel", None], ["resident_kernel", 32]], ran.stderr
    names = [name for name, _ in few]
    assert names.index("screen_kernel") < names.index("widen_kernel")  # which is longer, but has no product of matrices
    assert many[:3] == [["screen_hopper_kernel", None], ["answer_kernel", 512], ["resident_kernel", 32]]


def test_a_network_is_taken_for_loops_where_it_has_them() -> None:
    from tonari.cuda import compile
    from tonari.select.cuda.kernels import network

    assert network.LONG.value == compile.LOOPS_FROM
    assert inspect.signature(network._sort_in_loops.fn).parameters["NEAR"].default == compile.UNROLLED


@pytest.mark.process
def test_is_compiled_compiles_nothing(tmp_path: Path) -> None:
    ran = run(
        """
from triton import knobs
seen = []
knobs.compilation.listener = lambda *, src, cache_hit, **_: seen.append(cache_hit)
call = calls()[0]
print(is_compiled(call), is_compiled(call), seen)
compile_call(call)
print(is_compiled(call), seen)
""",
        tmp_path,
    )
    assert ran.stdout.split("\n")[:2] == ["False False []", "True [False]"], ran.stderr


@pytest.mark.process
def test_one_kernel_that_fails_is_reported_and_the_others_compiled(tmp_path: Path) -> None:
    ran = run(
        """
from triton.backends.nvidia.compiler import CUDABackend
usual = CUDABackend.make_cubin
def make_cubin(backend, src, metadata, *given):
    if metadata["name"] == "widen_kernel":
        raise ValueError("spoilt")
    return usual(backend, src, metadata, *given)
CUDABackend.make_cubin = make_cubin
count = ahead.compile_ahead(stage, card)
print(count, len(calls()), len(driver.active.loaded), "widen_kernel" in driver.active.loaded)
""",
        tmp_path,
    )
    count, known, loaded, failed = ran.stdout.split()
    assert (count, int(loaded), failed) == (known, int(known) - 1, "False"), ran.stderr
    assert f"WARNING:tonari:1 of {count} kernels could not be compiled ahead, and are compiled when" in ran.stderr
    assert "ValueError: spoilt" in ran.stderr


@pytest.mark.process
def test_a_program_that_compiles_nothing_imports_little() -> None:
    told = "import sys, tonari; print({'torch', 'triton'} & set(sys.modules))"
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


@pytest.mark.process
def test_rehearsals_import_little(tmp_path: Path) -> None:
    """Some operations of torch, such as cat, would import its compiler to do nothing; contractions need them."""
    ran = run(
        """
import sys
from tonari.exact.cuda.attempts.first import DevicePoints
given = {"devices": ("cuda:0",), "free_bytes": 10**11}
with rehearsing(card):
    for m in (10**4, 10**6):
        plan = plans.exact_cuda(10**6, m, 128, 10, self_join=m == 10**6, **given)
        rehearse_search(plan, "float32", self_join=m == 10**6)
        points, queries = (torch.empty((rows, 128), device="meta") for rows in (10**6, m))
        search = DevicePoints(points, plan.metric, plan.precisions[0]).begin(queries, plan)
        own = torch.empty(m, dtype=torch.int64, device="meta") if m == 10**6 else None
        for rows in (3, 10**4):
            some = search.queries[:rows], None if own is None else own[:rows]
            for level in search.levels():
                level.begin()(*some)
            search.compare(*some)
print([name for name in ("torch._dynamo", "sympy") if name in sys.modules])
""",
        tmp_path,
    )
    assert ran.stdout.strip() == "[]", ran.stderr


@pytest.mark.process
def test_ctrl_c_leaves_what_has_not_begun(tmp_path: Path) -> None:
    ran = run(
        """
import signal, threading, time
from triton.backends.nvidia.compiler import CUDABackend
usual = CUDABackend.make_ttir
def make_ttir(*given):
    begun.append(1)
    if len(begun) == 1:
        os.kill(os.getpid(), signal.SIGINT)
    time.sleep(0.5)
    return usual(*given)
begun = []
CUDABackend.make_ttir = staticmethod(make_ttir)
try:
    ahead.compile_ahead(stage, card)
except KeyboardInterrupt:
    print("interrupted", len(begun), len(calls()), threading.active_count())
""",
        tmp_path,
    )
    said, begun, known, threads = ran.stdout.split()
    assert (said, threads) == ("interrupted", "1"), ran.stderr
    assert int(begun) < int(known)


@pytest.mark.process
def test_ctrl_c_while_threads_start_leaves_none(tmp_path: Path) -> None:
    ran = run(
        """
import threading
usual, started = threading.Thread.start, []
def start(thread):
    usual(thread)
    started.append(1)
    if len(started) == 2:
        raise KeyboardInterrupt
found = calls()
threading.Thread.start = start
try:
    compile.compile_together(found)
except KeyboardInterrupt:
    print("interrupted", len(started), threading.active_count())
""",
        tmp_path,
        TONARI_NUM_THREADS="4",
    )
    assert ran.stdout.split() == ["interrupted", "2", "1"], ran.stderr


def test_a_launch_that_nobody_expects_asks_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its kernel is compiled where it is launched."""
    for name in ("is_compiled", "compile_ahead"):
        monkeypatch.setattr(ahead, name, lambda *given: pytest.fail("asked"))
    ahead.prepare_for(Call(None, {}, {}, {}, ("a variant",)), "cuda:0")


def test_only_a_kernel_that_has_to_be_compiled_starts_a_rehearsal(monkeypatch: pytest.MonkeyPatch) -> None:
    from tonari.cuda.rehearsal import Card

    asked: list[Any] = []
    monkeypatch.setattr(ahead, "card_of", lambda device: Card((9, 0), 132))
    monkeypatch.setenv("TONARI_NUM_THREADS", "2")
    monkeypatch.setattr(ahead, "is_compiled", lambda call: call.variant == ("known",))
    monkeypatch.setattr(ahead, "compile_ahead", lambda stage, card, progress: (stage(), asked.append(progress)))
    known, new = (Call(None, {}, {}, {}, (name,)) for name in ("known", "new"))
    with ahead.expecting(lambda: asked.append("search"), True):
        ahead.prepare_for(known, "cuda:0")
        assert asked == []
        ahead.prepare_for(new, "cuda:0")
        ahead.prepare_for(new, "cuda:0")  # once is enough
        with ahead.expecting(lambda: asked.append("retry")):
            ahead.prepare_for(new, "cuda:0")
    ahead.prepare_for(new, "cuda:0")
    assert asked == ["search", True, "retry", True]
    asked.clear()
    with ahead.expecting(lambda: asked.append("graph")):
        with ahead.expecting(lambda: asked.append("truth of some rows")):
            ahead.prepare_for(new, "cuda:0")
        ahead.prepare_for(new, "cuda:0")
    assert asked == ["truth of some rows", "graph", None]  # compiled together


def test_kernels_that_call_themselves_are_measured() -> None:
    """How long one takes to compile, by which kernels are ordered."""
    from tonari.cuda import compile
    from tonari.kdtree.cuda.kernels.halve import halve_kernel
    from tonari.kdtree.cuda.kernels.search import search_kernel

    for kernel in (halve_kernel, search_kernel):
        assert compile._instructions(kernel.fn) > 100


def test_one_processor_compiles_where_it_launches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TONARI_NUM_THREADS", "1")
    monkeypatch.setattr(ahead, "is_compiled", lambda call: pytest.fail("asked"))
    with ahead.expecting(lambda: pytest.fail("rehearsed")):
        ahead.prepare_for(Call(None, {}, {}, {}, ("new",)), "cuda:0")


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
began = time.perf_counter()
count = tonari.warm(1_000_000, 10_000, 128, k) if sys.argv[2] == "warm" else 0
compiled = []
knobs.compilation.listener = lambda *, src, cache_hit, **_: compiled.append(src.name) if not cache_hit else None
if sys.argv[2] == "search":
    tonari.search(queries, points, k)
    torch.cuda.synchronize()
print(json.dumps([time.perf_counter() - began, compiled, count]))
"""


def cold(cache: Path, k: int, how: str) -> list[Any]:
    """Seconds, kernels that were compiled for the search, and how many warming compiled, in a fresh process."""
    environment = os.environ | {"TRITON_CACHE_DIR": str(cache)}
    ran = subprocess.run(
        [sys.executable, "-c", _COLD, str(k), how], env=environment, capture_output=True, text=True, check=True
    )
    found: list[Any] = json.loads(ran.stdout)
    return found


@on_gpu
@pytest.mark.process
@pytest.mark.parametrize("k", [10, 256])
def test_the_first_search_of_a_machine_takes_seconds(k: int, tmp_path: Path) -> None:
    seconds, compiled, _ = cold(tmp_path, k, "search")
    assert len(compiled) > 10
    assert seconds < 30  # benchmarks hold it to less


@on_gpu
@pytest.mark.process
def test_after_warming_nothing_is_compiled(tmp_path: Path) -> None:
    assert cold(tmp_path, 10, "warm")[2] > 10
    assert cold(tmp_path, 10, "warm")[2] == 0
    assert cold(tmp_path, 10, "search")[1] == []
