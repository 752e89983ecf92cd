"""The term of a distance, by which trees bound: that of the metric, and none of a metric that is not known there."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

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
