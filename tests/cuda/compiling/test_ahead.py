"""Kernels compiled in advance by threads: which kernels, where they are stored, and failures and interrupts.

No GPU is needed: kernels are compiled for one in separate processes with an empty cache.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.ahead import run
from tests.helpers.devices import HAS_TORCH, needs_torch

pytestmark = needs_torch
if HAS_TORCH:
    from tonari.cuda.compiling import ahead
    from tonari.cuda.compiling.rehearsal import Call


@pytest.mark.process
def test_a_program_that_compiles_nothing_imports_little() -> None:
    told = "import sys, tonari; print({'torch', 'triton'} & set(sys.modules))"
    ran = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True)
    assert ran.stdout == "set()\n"


@pytest.mark.process
def test_triton_is_loaded_while_a_verb_and_kernels_are_imported(tmp_path: Path) -> None:
    """Threads that import modules of Triton at the same time would deadlock: each holds a lock that another needs."""
    program = """
import torch, tonari
torch.cuda.is_initialized = lambda: True
tonari.search
from tonari.cuda.compiling import beginning
assert beginning.begin_soon.cache_info().currsize == 1
import tonari.exact.cuda.dispatch, tonari.exact.cuda.kernels.screens.all_minima_hopper
errors = [future.exception() for future in beginning.begin_soon()]
print([str(error) for error in errors if error is not None and "0 active drivers" not in str(error)])
"""
    ran = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "TRITON_CACHE_DIR": str(tmp_path), "TONARI_NUM_THREADS": "2"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.stdout == "[]\n", ran.stderr


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
    """Some operations of torch, such as cat, would import torch's compiler for nothing."""
    ran = run(
        """
import sys
from tonari.exact.cuda.attempts.first import DevicePoints
from tonari.exact.cuda.attempts.rehearse import rehearse_preparation
from tonari.exact.cuda.routes.codes.search import rehearse_codes, rehearse_coding
from tonari.kdtree.cuda.dispatch import rehearse_tree
from tonari.nn_descent.cuda.rehearse import rehearse_descent
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
    for form_dim in ("pilot", 64):
        plan = plans.exact_cuda(10**6, 10**6, 768, 10, self_join=True, form_dim=form_dim, **given)
        rehearse_preparation(plan)
        rehearse_search(plan, "float32", self_join=True)
    rehearse_descent(plans.descent(10**6, 128, 15, **given), "float32")
    rehearse_tree(plans.tree(10**6, 10**6, 3, 15, self_join=True, **given), "float32", self_join=True)
    rows = {"dtype": "uint8", "query_dtype": "uint8", "host_points": True, "host_queries": True, "route": "codes"}
    plan = plans.exact_cuda(10**7, 2048, 128, 10, **rows, **given)
    rehearse_coding(plan)
    rehearse_codes(plan, "uint8", self_join=False)
print([name for name in ("torch._dynamo", "sympy") if name in sys.modules])
""",
        tmp_path,
    )
    assert ran.stdout.strip() == "[]", ran.stderr


def test_a_launch_that_nobody_expects_asks_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel is compiled when it is launched."""
    for name in ("is_compiled", "compile_together"):
        monkeypatch.setattr(ahead, name, lambda *given: pytest.fail("asked"))
    ahead.prepare_for(Call(None, {}, {}, {}, ("a variant",)), "cuda:0")


def test_only_a_kernel_that_has_to_be_compiled_starts_a_rehearsal(monkeypatch: pytest.MonkeyPatch) -> None:
    from tonari.cuda.compiling.rehearsal import Card

    asked: list[Any] = []
    monkeypatch.setattr(ahead, "card_of", lambda device: Card((9, 0), 132))
    monkeypatch.setenv("TONARI_NUM_THREADS", "2")
    monkeypatch.setattr(ahead, "is_compiled", lambda call: call.variant == ("known",))
    monkeypatch.setattr(ahead, "compile_together", lambda calls, progress: asked.append(progress))
    monkeypatch.setattr(ahead, "is_beginning", lambda: False)  # other tests may have begun to load Triton
    known, new = (Call(None, {}, {}, {}, (name,)) for name in ("known", "new"))
    with ahead.expecting(lambda: asked.append("search"), True):
        ahead.prepare_for(known, "cuda:0")
        assert asked == []
        ahead.prepare_for(new, "cuda:0")
        ahead.prepare_for(new, "cuda:0")  # one request is enough
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
    asked.clear()
    monkeypatch.setattr(ahead, "is_beginning", lambda: True)  # the compiled kernel is not known yet
    with ahead.expecting(lambda: asked.append("search")):
        ahead.prepare_for(known, "cuda:0")
        assert asked == ["search"]
        ahead.prepare_for(new, "cuda:0")
    assert asked == ["search", "search", None]


def test_a_search_on_a_device_begins_to_load_triton_and_an_inner_one_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    begun: list[str] = []
    monkeypatch.setattr(ahead, "begin_soon", lambda: begun.append("begun"))
    monkeypatch.setenv("TONARI_NUM_THREADS", "2")
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: False)
    with ahead.expecting(lambda: None):
        assert begun == []  # in Triton's interpreter
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    with ahead.expecting(lambda: None), ahead.expecting(lambda: None):
        assert begun == ["begun"]


def test_one_processor_compiles_where_it_launches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TONARI_NUM_THREADS", "1")
    monkeypatch.setattr(ahead, "is_compiled", lambda call: pytest.fail("asked"))
    with ahead.expecting(lambda: pytest.fail("rehearsed")):
        ahead.prepare_for(Call(None, {}, {}, {}, ("new",)), "cuda:0")
