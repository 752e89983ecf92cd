"""Processes that compile kernels where Triton's cache is empty."""

from __future__ import annotations

import json
import select
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.ahead import run
from tests.helpers.devices import needs_torch
from tonari.cuda import tuning
from tonari.cuda.compiling import processes

pytestmark = needs_torch


@pytest.mark.process
def test_threads_find_what_processes_compile_and_replace_processes_that_fail(tmp_path: Path) -> None:
    """Of kernels of all kinds: with functions as constants, with descriptors, of Gluon."""
    ran = run(
        """
import select
logging.getLogger("tonari").setLevel(logging.DEBUG)
from triton import knobs
from tonari.cuda.compiling import beginning
beginning.begin()
both = processes.start()
select.select([both._all[0]._process.stdout], [], [], 60), select.select([both._all[1]._process.stdout], [], [], 60)
print(len(both), [one.is_ready() for one in both._all])
plan = plans.exact_cuda(10**6, 10**4, 128, 10, devices=("cuda:0",), free_bytes=10**11)
with rehearsing(card) as rehearsal:
    rehearse_search(plan, "float32", self_join=False)
of = {call.name: call for call in [*rehearsal.calls.values(), *calls()]}
some = [of[name] for name in ("screen_elementwise_kernel", "screen_hopper_kernel", "products_kernel", "widen_kernel")]
hits = []
knobs.compilation.listener = lambda *, src, cache_hit, **_: hits.append([src.name, cache_hit])
take, kept = both.take, both._all
def pop():
    while True:
        if (one := take()) is not None:
            return one
both.take = pop
print(compile.compile_together(some[:3]), json.dumps(hits))
print(len(both), [one._process.returncode for one in kept], [is_compiled(call) for call in some])
hits.clear()
again = processes.Compilers(1)
select.select([again._all[0]._process.stdout], [], [], 60)
again._all[0].is_ready()
again._all[0].kill()
processes.start = compile.start = lambda: again
print(compile.compile_together(some[3:]), json.dumps(hits), len(again))
""",
        tmp_path,
        TONARI_NUM_THREADS="4",
    )
    lines = ran.stdout.splitlines()
    assert lines[0] == "2 [True, True]", ran.stderr
    count, hits = lines[1].split(maxsplit=1)
    assert count == "3"
    assert sorted(json.loads(hits)) == [
        ["products_kernel", True],
        ["screen_elementwise_kernel", True],
        ["screen_hopper_kernel", True],
    ], ran.stderr
    assert lines[2] == "0 [-9, -9] [True, True, True, False]"
    assert lines[3] == '1 [["widen_kernel", false]] 0'
    assert ran.stderr.count("is compiled by a thread") == 1
    assert "WARNING" not in ran.stderr


def test_processes_are_started_where_the_cache_is_empty_and_processors_are_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    monkeypatch.setattr(processes, "Compilers", asked.append)
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "triton"))
    monkeypatch.setattr(tuning, "COMPILERS", 8)
    for threads in (2, 3, 4, 64):
        monkeypatch.setenv("TONARI_NUM_THREADS", str(threads))
        processes.start.__wrapped__()
    assert asked == [0, 0, 2, 8]
    (tmp_path / "triton").mkdir()
    processes.start.__wrapped__()
    (tmp_path / "triton" / "kernel").touch()
    processes.start.__wrapped__()
    assert asked[4:] == [8, 0]
    assert processes._cache_of({"TRITON_HOME": "/home"}) == Path("/home/.triton/cache")
    assert processes._cache_of({}) == Path.home() / ".triton" / "cache"


@pytest.mark.process
def test_a_process_without_work_ends() -> None:
    program = """
from tonari.cuda import tuning
tuning.IDLE_SECONDS = {seconds}
from tonari.cuda.compiling.processes import answer
answer()
"""
    for seconds, ends in ((0.01, False), (600, True)):
        asked = subprocess.Popen(
            [sys.executable, "-c", program.format(seconds=seconds)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert asked.stdin
        assert asked.stdout
        select.select([asked.stdout], [], [], 60)
        if ends:  # the process that started it ends
            asked.stdin.close()
        assert asked.stdout.read() == b"r"
        assert asked.wait(60) == 0
        asked.stdin.close()
        asked.stdout.close()
