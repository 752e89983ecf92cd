"""The term of a distance, by which trees bound: the metric's term, and an error for unknown metrics."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from tests.helpers.compiling import compiled
from tests.helpers.devices import HAS_CUDA, HAS_TORCH, needs_torch, on_device
from tonari.metrics import METRICS

if HAS_TORCH:
    import torch
    import triton
    import triton.language as tl

    from tonari.metrics.kernels.terms import of_distance

    @triton.jit
    def term_kernel(t_ptr, out_ptr, METRIC: tl.constexpr):
        at = tl.arange(0, 8)
        tl.store(out_ptr + at, of_distance(tl.load(t_ptr + at), METRIC))


pytestmark = needs_torch
IN_TREES = [name for name, metric in METRICS.items() if metric.in_trees and metric.family == "terms"]


@on_device
@pytest.mark.parametrize("name", IN_TREES)
def test_the_term_of_a_distance_is_that_of_the_metric(name: str, device: str) -> None:
    t = np.array([0.0, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0])
    out = torch.full((8,), float("nan"), dtype=torch.float64, device=device)
    term_kernel[(1,)](torch.from_numpy(t).to(device), out, METRIC=METRICS[name])
    expected = t ** METRICS[name].degree
    np.testing.assert_allclose(out.cpu().numpy(), expected, rtol=1e-15)


@pytest.mark.skipif(HAS_CUDA, reason="the interpreter raises what a compiler reports in its own words")
def test_a_metric_of_another_degree_is_not_bounded_like_l1() -> None:
    out = torch.zeros(8, dtype=torch.float64)
    with pytest.raises(Exception, match="no term for a metric of this degree"):
        term_kernel[(1,)](out, out, METRIC=SimpleNamespace(degree=2.5))


# Without a GPU, for one GPU: not everything that the interpreter runs compiles.
_COMPILED = """
import json
from dataclasses import replace
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource, compile
from tests.helpers.target_alone import HOPPER
from tests.kdtree.cuda.test_of_distance import IN_TREES, term_kernel
from tonari.metrics import METRICS

def compiled(metric):
    types = {"t_ptr": "*fp64", "out_ptr": "*fp64", "METRIC": "constexpr"}
    return compile(ASTSource(term_kernel, types, {"METRIC": metric}), target=GPUTarget(*HOPPER))

made = [name for name in IN_TREES if "st.global" in compiled(METRICS[name]).asm["ptx"]]
try:
    compiled(replace(METRICS["l1"], degree=2.5))
    refusal = ""
except Exception as error:
    refusal = repr(error) + repr(error.__cause__)
print(json.dumps([made, refusal]))
"""


@pytest.mark.process
def test_every_metric_of_trees_compiles_for_a_card_and_no_other_degree_does(tmp_path: Path) -> None:
    made, refusal = json.loads("".join(compiled(_COMPILED, tmp_path)))
    assert made == IN_TREES
    assert "no term for a metric of this degree" in refusal
