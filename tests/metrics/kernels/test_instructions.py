"""Functions that are single GPU instructions have the bits of NumPy's, and kernels need no library for them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.helpers.ahead import run
from tests.helpers.devices import HAS_TORCH, needs_torch, on_device

pytestmark = needs_torch
if HAS_TORCH:
    import torch
    import triton
    import triton.language as tl

    from tonari.metrics.kernels.instructions import floor, rsqrt, sqrt

    @triton.jit
    def apply_kernel(x_ptr, out_ptr, FUNCTION: tl.constexpr, COUNT: tl.constexpr):
        at = tl.arange(0, COUNT)
        tl.store(out_ptr + at, FUNCTION(tl.load(x_ptr + at)))


VALUES = [0.0, -0.0, 0.5, -0.5, 1 - 2.0**-24, -(1 - 2.0**-24), 2.0, 3.0, -3.0, 2.0**31 + 0.5, 1e30, -1e30, float("inf")]


def applied(function: Any, values: npt.NDArray[Any], device: str) -> npt.NDArray[Any]:
    given = torch.as_tensor(values, device=device)
    out = torch.empty_like(given)
    apply_kernel[(1,)](given, out, FUNCTION=function, COUNT=len(values))
    return np.asarray(out.cpu())


def of_all_sizes(dtype: Any) -> npt.NDArray[Any]:
    count = 1024 - len(VALUES)
    drawn = np.random.default_rng(0).standard_normal(count) * 10.0 ** np.linspace(-30, 30, count)
    return np.concatenate([VALUES, drawn]).astype(dtype)


@on_device
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_floors_are_those_of_numpy(dtype: str, device: str) -> None:
    values = of_all_sizes(dtype)
    np.testing.assert_array_equal(applied(floor, values, device), np.floor(values))


@on_device
def test_roots_of_float64_are_correctly_rounded(device: str) -> None:
    values = np.abs(of_all_sizes("float64"))
    np.testing.assert_array_equal(applied(sqrt, values, device), np.sqrt(values))


@on_device
def test_roots_of_float32_are_within_three_units_in_the_last_place(device: str) -> None:
    """Screens add this error to their bounds (terms.py)."""
    values = np.abs(of_all_sizes("float32"))
    values[(values < 1e-37) | (values == np.inf)] = 1
    exact = np.sqrt(values.astype("float64"))
    assert (np.abs(applied(sqrt, values, device) - exact) <= 3 * 2.0**-24 * exact).all()
    assert (np.abs(applied(rsqrt, values, device) * exact - 1) <= 3 * 2.0**-24).all()


@pytest.mark.process
def test_kernels_of_first_calls_link_no_library(tmp_path: Path) -> None:
    """Linking libdevice would hold the interpreter's lock for as long as translating the longest kernels."""
    ran = run(
        """
import re
from tonari.kdtree.cuda.dispatch import rehearse_tree
from tonari.nn_descent.cuda.rehearse import rehearse_descent
from triton.backends.compiler import GPUTarget
class Translated(Exception):
    pass
def translated(usual, *given, **named):
    text = str(usual(*given, **named))
    called.update(re.findall(r"math.(?!abs|fma)[a-z0-9]*|tt.mulhiui", text))
    names.append(1)
    raise Translated
given = {"devices": ("cuda:0",), "free_bytes": 10**11}
with rehearsing(card) as rehearsal:
    graph = plans.exact_cuda(10**6, 10**6, 128, 15, self_join=True, **given)
    rehearse_search(graph, "float32", self_join=True, shift=128)
    rehearse_search(plans.exact_cuda(10**6, 10**4, 128, 10, **given), "float32", self_join=False)
    rehearse_descent(plans.descent(10**6, 128, 15, **given), "float32")
    rehearse_tree(plans.tree(10**6, 10**6, 3, 15, self_join=True, **given), "float32", self_join=True)
    for metric in ("canberra", "power:0.5"):
        plan = plans.exact_cuda(10**5, 10**3, 32, 10, metric=metric, **given)
        rehearse_search(plan, "float32", self_join=False)
called, names = set(), []
kind = lambda call: (call.name, call.constants.get("METRIC"), call.constants.get("PRECISION"))
different = {kind(call): call for call in rehearsal.calls.values()}
for call in different.values():
    try:
        with compile._instead_of_making_ir(call.kernel, translated):
            compile_call(call)
    except Translated:
        pass
print(json.dumps([len(names), sorted(called)]))
""",
        tmp_path,
    )
    count, called = json.loads(ran.stdout)
    assert called == [], ran.stderr
    assert count > 30
