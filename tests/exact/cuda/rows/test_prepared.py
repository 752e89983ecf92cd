"""All kinds of prepared points have the same interface, and packed copies of some rows equal those of a search's
sample.

Without a GPU, Triton's interpreter runs the kernels on the CPU.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.helpers.checks import gaussian
from tests.helpers.devices import HAS_TORCH, needs_torch
from tests.helpers.gpu_checks import DEVICE, plan_of, tensors

pytestmark = [needs_torch]
if HAS_TORCH:
    from tonari.exact.cuda.attempts.as_bytes import BytePoints, byte_points
    from tonari.exact.cuda.attempts.contracted import ContractedPoints, prepare_points
    from tonari.exact.cuda.attempts.first import DevicePoints
    from tonari.exact.cuda.routes.host_contracted import HostContractedPoints
    from tonari.exact.cuda.routes.host_refine import ScreenedPoints, prepare_host_refine
    from tonari.exact.cuda.rows.prepared import Contracted, Prepared

    KINDS = {
        DevicePoints: {},
        BytePoints: {},
        ContractedPoints: {"form_dim": 4},
        ScreenedPoints: {"route": "host_refine"},
        HostContractedPoints: {"route": "host_refine", "form_dim": 4},
    }
else:
    KINDS = {}
N, D = 300, 20


def prepared(kind: Any) -> tuple[Any, str]:
    """Prepare points of a kind, and return them with the precision of their packed copies."""
    points = np.rint(30 * gaussian(N, D)).clip(-128, 127)
    choices = KINDS[kind]
    there = points if "route" in choices else tensors(DEVICE, points)[0]
    plan = plan_of(there, there, 3, devices=(DEVICE,), **choices)
    if "route" in choices:
        return prepare_host_refine(there, plan), plan.precisions[0]
    if kind is BytePoints:
        return byte_points(there, there, plan), "int8"
    return prepare_points(there, plan), plan.precisions[0]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_points_have_one_interface(kind: Any) -> None:
    points, precision = prepared(kind)
    assert type(points) is kind
    assert isinstance(points, Prepared)
    assert isinstance(points, Contracted) == ("Contracted" in kind.__name__)
    assert len(points.points) == N
    assert points.form.d == D
    points.written.read()
    whole, some = points.copies.packed(precision), points.copies.packed(precision, 2)
    assert (whole.n, some.n) == (N, N // 2)
    assert (some.values[: N // 2] == whole.values[:N:2]).all()
    points.copies.forget_samples()
    assert points.copies.packed(precision).values is whole.values
    assert points.copies.packed(precision, 2).values is not some.values
