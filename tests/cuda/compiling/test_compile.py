"""Kernels are compiled by several processes, and loaded from the cache later."""

from __future__ import annotations

import json
from pathlib import Path

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


@pytest.mark.process
def test_is_compiled_compiles_nothing(tmp_path: Path) -> None:
    ran = run(
        """
from triton import knobs
seen = []
knobs.compilation.listener = lambda *, src, cache_hit, **_: seen.append(cache_hit)
call = calls()[0]
beginning.get_ready([call])
print(call.kernel.hash is not None, beginning.begin.cache_info().currsize)
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
(call, *_) = sorted(calls(), key=effort.effort)
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
few = sorted(calls(), key=effort.effort)[:3]
def make_cubin(backend, src, metadata, *given):
    if metadata["name"] == few[1].name:
        raise ValueError("spoilt")
    return usual(backend, src, metadata, *given)
CUDABackend.make_cubin = make_cubin
print(compile.compile_together(few), len(driver.active.loaded), few[1].name in driver.active.loaded)
""",
        tmp_path,
    )
    assert ran.stdout.split() == ["3", "2", "False"], ran.stderr
    assert "WARNING:tonari:1 of 3 kernels could not be compiled ahead, and are compiled when" in ran.stderr
    assert "ValueError: spoilt" in ran.stderr
