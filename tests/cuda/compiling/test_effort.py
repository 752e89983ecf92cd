"""The estimate by which kernels are ordered: what takes longest to compile comes first."""

from __future__ import annotations

import inspect
import json
from pathlib import Path

import pytest

from tests.helpers.ahead import run
from tests.helpers.devices import needs_torch

pytestmark = needs_torch


@pytest.mark.process
def test_what_is_unrolled_the_most_takes_the_longest(tmp_path: Path) -> None:
    """Networks that are unrolled, and the screen on Hopper, are those that take a second or more."""
    ran = run(
        """
def longest(k):
    plan = plans.exact_cuda(10**6, 10**4, 128, k, devices=("cuda:0",), free_bytes=10**11)
    with rehearsing(card) as rehearsal:
        rehearse_search(plan, "float32", self_join=False)
    calls = sorted(rehearsal.calls.values(), key=effort.effort, reverse=True)
    return [(call.name, call.constants.get("SIZE")) for call in calls]
def of_graph():
    plan = plans.exact_cuda(10**6, 10**6, 128, 15, self_join=True, devices=("cuda:0",), free_bytes=10**11)
    with rehearsing(card) as rehearsal:
        rehearse_search(plan, "float32", self_join=True)
    return [call.name for call in sorted(rehearsal.calls.values(), key=effort.effort, reverse=True)]
print(json.dumps([longest(10), longest(256)[:3], of_graph()]))
""",
        tmp_path,
    )
    few, many, graph = json.loads(ran.stdout)
    assert few[:2] == [["screen_hopper_kernel", None], ["resident_kernel", 32]], ran.stderr
    names = [name for name, _ in few]
    assert names.index("screen_kernel") < names.index("widen_kernel")  # which is longer, but has no product of matrices
    assert many[:3] == [["screen_hopper_kernel", None], ["answer_kernel", 512], ["resident_kernel", 32]]
    assert graph.index("sample_kernel") < graph.index("resident_kernel")
    assert names.index("products_kernel") < names.index("refine_kernel")


def test_a_network_is_taken_for_loops_where_it_has_them() -> None:
    from tonari.cuda.compiling import effort
    from tonari.select.cuda.kernels.registers import network

    assert network.LONG.value == effort.LOOPS_FROM
    assert inspect.signature(network._sort_in_loops.fn).parameters["NEAR"].default == effort.UNROLLED


def test_kernels_that_call_themselves_are_measured() -> None:
    """How long one takes to compile, by which kernels are ordered."""
    from tonari.cuda.compiling import effort
    from tonari.kdtree.cuda.kernels.halve import halve_kernel
    from tonari.kdtree.cuda.kernels.search import search_kernel

    for kernel in (halve_kernel, search_kernel):
        assert effort._instructions(kernel.fn) > 100


def test_a_network_that_merges_runs_takes_the_longest() -> None:
    from tonari.cuda.compiling.effort import effort
    from tonari.cuda.compiling.rehearsal import Call
    from tonari.select.cuda.kernels.bitonic import bitonic_kernel
    from tonari.select.cuda.kernels.threshold import answer_kernel

    runs = Call(bitonic_kernel, {}, {"TILE": 512, "K": 32}, {}, ())
    assert effort(runs) > effort(Call(answer_kernel, {}, {"SIZE": 128}, {}, ()))
