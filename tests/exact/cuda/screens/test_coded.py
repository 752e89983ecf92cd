"""The two limits of a screen of codes each include the errors of the compared values.

Without a GPU, Triton's interpreter runs the kernels on the CPU.
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.helpers.checks import gaussian
from tests.helpers.devices import HAS_TORCH, needs_torch
from tests.helpers.gpu_checks import DEVICE, plan_of, tensors

pytestmark = needs_torch
if HAS_TORCH:
    from tonari.exact.cuda.routes.codes.search import prepare_codes
    from tonari.exact.cuda.rows.codes import code_queries
    from tonari.exact.cuda.rows.pack import new_flags
    from tonari.exact.cuda.screens.coded import CodedScreen


def test_limits() -> None:
    queries, points = gaussian(3, 9, 1), gaussian(140, 9)
    plan = plan_of(queries, points, 2, form_dim=5, route="codes", devices=(DEVICE,))
    prepared = prepare_codes(points, plan)
    (there,) = tensors(DEVICE, queries)
    screen = CodedScreen(prepared, plan, new_flags(there.device), double=False)
    coded = code_queries(there, prepared.coding, screen.flags, first=0)
    look = screen.coded_look(coded, None, 4, None)
    kth = np.array([0.5, 2.0, 4.0], np.float32)
    squares, scores = (part.cpu().numpy() for part in screen.limits(look, tensors(DEVICE, kth)[0]))
    reach = kth * float(prepared.form.scale) * (1 + float(prepared.by.stretch)) + float(prepared.farthest)
    errors, apart = look.rows.errors.cpu().numpy(), look.apart.cpu().numpy()
    assert (apart > 10 * errors).all()
    assert squares == pytest.approx((reach + errors) ** 2, rel=1e-4)
    assert (squares >= (reach + errors) ** 2).all()
    assert scores == pytest.approx((reach + apart) ** 2 - coded.squares.cpu().numpy(), rel=1e-4)
    assert look.nearest.shape == (3, 12)
