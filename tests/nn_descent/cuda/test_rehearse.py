"""The rehearsal of NN-Descent compiles exactly the kernels that it launches."""

from __future__ import annotations

import numpy as np
import pytest

from tests.helpers import checks, plans
from tests.helpers.devices import HAS_CUDA, HAS_TORCH, needs_torch
from tests.helpers.gpu_checks import DEVICE, GB, tensor_of

pytestmark = [needs_torch]
if HAS_TORCH:
    from tests.helpers.launches import launched
    from tonari.cuda.compiling import ahead
    from tonari.cuda.compiling.rehearsal import Card, rehearsing
    from tonari.nn_descent.cuda.backend import CudaBackend
    from tonari.nn_descent.cuda.rehearse import rehearse_descent


@pytest.mark.parametrize("metric", ["euclidean", "inner_product"])
def test_a_rehearsal_launches_what_a_run_launches(metric: str) -> None:
    n, d = 60, 7
    given = {"list_size": 8, "n_hubs": 4, "reverse": 3, "neighbors_per_hub": 6, "width": 16}
    given |= {"n_clusters": 4, "n_probe": 2, "kmeans_iters": 1, "light_rounds": 1}
    plan = plans.descent(n, d, 5, metric=metric, devices=(DEVICE,), free_bytes=8 * GB, **given)
    points = tensor_of(checks.gaussian(n, d).astype(np.float32)).to(DEVICE)
    with launched() as seen:
        backend = CudaBackend(points, plan)
        entries = backend.start("clusters")
        entries = backend.round(entries, light=True).entries
        backend.round(entries)
    with rehearsing(ahead.card_of(DEVICE) if HAS_CUDA else Card((0, 0), 1)) as rehearsal:
        rehearse_descent(plan, "float32")
    calls = rehearsal.calls.values()
    assert {variant[0].__name__ for variant in seen} == {call.name for call in calls}
    if HAS_CUDA:  # the interpreter takes more rows in a program
        assert set(seen) <= set(rehearsal.calls)


def test_a_round_has_one_variant_of_most_kernels() -> None:
    """Each variant would be compiled at the first graph; the first number of a column is no reason for another
    variant.
    """
    plan = plans.descent(10**6, 128, 15, devices=("cuda:0",), free_bytes=10**11)
    with rehearsing(Card((9, 0), 132)) as rehearsal:
        rehearse_descent(plan, "float32")
    names = [call.name for call in rehearsal.calls.values()]
    assert {name for name in names if names.count(name) > 1} == {"near_kernel", "resident_kernel"}
