"""Threads that compile and load kernels: how many at once, in which order, and what Ctrl-C leaves."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.helpers.ahead import run
from tests.helpers.devices import needs_torch

pytestmark = needs_torch


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
print(json.dumps([order, [call.name for call in sorted(calls(), key=effort.effort, reverse=True)], most]))
""",
        tmp_path,
        TONARI_NUM_THREADS="4",
    )
    order, expected, most = json.loads(ran.stdout)
    assert order == expected, ran.stderr
    assert most == 1


@pytest.mark.process
def test_launchers_in_c_are_compiled_beside_their_kernels(tmp_path: Path) -> None:
    """One for each kernel, before the kernel is loaded; if that fails, loading compiles it."""
    ran = run(
        """
loading._launchers_are_compiled = lambda: True
few, order = sorted(calls(), key=effort.effort)[:3], []
def launcher(source, metadata):
    early = not hasattr(metadata, "num_warps")
    order.append((source.fn.__name__, early))
    if early and source.fn.__name__ == few[1].name:
        raise ValueError("spoilt")
driver.active.launcher_cls = launcher
count = compile.compile_together(few)
print(json.dumps([count, len(driver.active.loaded), order]))
""",
        tmp_path,
    )
    count, loaded, order = json.loads(ran.stdout)
    assert count == loaded == 3, ran.stderr
    assert "WARNING" not in ran.stderr
    assert len(order) == 2 * count
    assert sorted(name for name, early in order if early) == sorted(name for name, early in order if not early)
    for name in {name for name, _ in order}:
        assert next(early for each, early in order if each == name), name


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
beginning.begin()
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
