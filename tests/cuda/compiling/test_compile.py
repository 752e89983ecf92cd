"""Kernels are compiled by several processes, and loaded from the cache later."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.helpers.ahead import run
from tests.helpers.devices import needs_torch

pytestmark = needs_torch


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
    assert len({*tmp_path.rglob("*.cubin")}) == count
    assert not {*tmp_path.rglob("*.ptx")}
    again = run("print(ahead.compile_ahead(stage, card), [is_compiled(call) for call in calls()])", tmp_path)
    assert again.stdout.strip() == f"0 {[True] * count}"


@pytest.mark.full  # compiles for several seconds
@pytest.mark.process
def test_several_are_compiled_at_once(tmp_path: Path) -> None:
    """The passes of the compiler release the interpreter's lock, so several threads run them at the same time."""
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
    """Unrolled networks and the screen for Hopper take a second or more."""
    ran = run(
        """
def longest(k):
    plan = plans.exact_cuda(10**6, 10**4, 128, k, devices=("cuda:0",), free_bytes=10**11)
    with rehearsing(card) as rehearsal:
        rehearse_search(plan, "float32", self_join=False)
    calls = sorted(rehearsal.calls.values(), key=compile._effort, reverse=True)
    return [(call.name, call.constants.get("SIZE")) for call in calls]
def of_graph():
    plan = plans.exact_cuda(10**6, 10**6, 128, 15, self_join=True, devices=("cuda:0",), free_bytes=10**11)
    with rehearsing(card) as rehearsal:
        rehearse_search(plan, "float32", self_join=True)
    return [call.name for call in sorted(rehearsal.calls.values(), key=compile._effort, reverse=True)]
print(json.dumps([longest(10), longest(256)[:3], of_graph()]))
""",
        tmp_path,
    )
    few, many, graph = json.loads(ran.stdout)
    assert few[:2] == [["screen_hopper_kernel", None], ["resident_kernel", 32]], ran.stderr
    names = [name for name, _ in few]
    assert names.index("screen_kernel") < names.index("widen_kernel")  # longer, but without a matrix product
    assert many[:3] == [["screen_hopper_kernel", None], ["answer_kernel", 512], ["resident_kernel", 32]]
    assert graph.index("sample_kernel") < graph.index("resident_kernel")
    assert names.index("products_kernel") < names.index("refine_kernel")


def test_a_network_is_taken_for_loops_where_it_has_them() -> None:
    from tonari.cuda.compiling import compile
    from tonari.select.cuda.kernels import network

    assert network.LONG.value == compile.LOOPS_FROM
    assert inspect.signature(network._sort_in_loops.fn).parameters["NEAR"].default == compile.UNROLLED


@pytest.mark.process
def test_launchers_in_c_are_compiled_beside_their_kernels(tmp_path: Path) -> None:
    """Each kernel's launcher is compiled before the kernel is loaded; if that fails, loading compiles it."""
    ran = run(
        """
compile._launchers_are_compiled = lambda: True
order = []
def launcher(source, metadata):
    early = not hasattr(metadata, "num_warps")
    order.append((source.fn.__name__, early))
    if early and source.fn.__name__ == "widen_kernel":
        raise ValueError("spoilt")
driver.active.launcher_cls = launcher
count = ahead.compile_ahead(stage, card)
print(json.dumps([count, len(driver.active.loaded), order]))
""",
        tmp_path,
    )
    count, loaded, order = json.loads(ran.stdout)
    assert count == loaded, ran.stderr
    assert "WARNING" not in ran.stderr
    assert len(order) == 2 * count
    assert sorted(name for name, early in order if early) == sorted(name for name, early in order if not early)
    for name in {name for name, _ in order}:
        assert next(early for each, early in order if each == name), name


def test_tritons_key_is_the_same_if_its_library_is_hashed_in_one_piece() -> None:
    from triton.runtime import cache

    from tonari.cuda.compiling import compile

    compute = cache.triton_key.__wrapped__
    assert compile._key(cache) == compute()
    assert "open" not in vars(cache)


def test_a_large_file_is_read_in_one_piece(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tonari.cuda import tuning
    from tonari.cuda.compiling import compile

    def triton_key() -> str:
        with module.open(path, "rb") as file:
            pieces.extend(bytes(piece) for piece in iter(lambda: file.read(2), b""))
        return "key"

    path, module = tmp_path / "library", SimpleNamespace(triton_key=triton_key)
    path.write_bytes(b"abcdef")
    for least, expected in ((7, [b"ab", b"cd", b"ef"]), (6, [b"abcdef"])):
        pieces: list[bytes] = []
        monkeypatch.setattr(tuning, "WHOLE_BYTES", least)
        assert compile._key(module) == "key"
        assert pieces == expected
    module.triton_key = lambda: 1 // 0
    with pytest.raises(ZeroDivisionError):
        compile._key(module)
    assert not hasattr(module, "open")


@pytest.mark.process
def test_is_compiled_compiles_nothing(tmp_path: Path) -> None:
    ran = run(
        """
from triton import knobs
seen = []
knobs.compilation.listener = lambda *, src, cache_hit, **_: seen.append(cache_hit)
call = calls()[0]
compile.get_ready([call])
print(call.kernel.hash is not None, compile._begin.cache_info().currsize)
print(is_compiled(call), is_compiled(call), seen)
compile_call(call)
print(is_compiled(call), seen)
""",
        tmp_path,
    )
    assert ran.stdout.split("\n")[1:3] == ["False False []", "True [False]"], ran.stderr
    assert ran.stdout.startswith("True 0\n")  # the source is hashed before Triton's key and driver are known


@pytest.mark.process
def test_steps_of_compilation_are_kept_where_triton_is_asked_to(tmp_path: Path) -> None:
    ran = run(
        """
from triton import knobs
(call, *_) = sorted(calls(), key=compile._effort)
print(compile.compile_together([call]), vars(knobs.compilation))
""",
        tmp_path,
        TRITON_STORE_BINARY_ONLY="0",
    )
    assert ran.stdout.split() == ["1", "{}"], ran.stderr
    assert len({*tmp_path.rglob("*.ptx")}) == 1


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
compile._begin()
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


def test_kernels_that_call_themselves_are_measured() -> None:
    """Kernels are ordered by the time of their compilation, including the functions that they call."""
    from tonari.cuda.compiling import compile
    from tonari.kdtree.cuda.kernels.halve import halve_kernel
    from tonari.kdtree.cuda.kernels.search import search_kernel

    for kernel in (halve_kernel, search_kernel):
        assert compile._instructions(kernel.fn) > 100
