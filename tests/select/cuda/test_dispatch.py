"""k-selection of tensors by every method; without a GPU in Triton's interpreter."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.helpers import select_checks
from tests.helpers.devices import HAS_TORCH, interpreted
from tests.helpers.select_checks import (
    GPU_VARIANTS,
    assert_selection,
    make,
    select_by_kernels,
    variants,
)
from tonari.cuda.compiling.rehearsal import Card, rehearsing
from tonari.select.cuda import dispatch
from tonari.select.registry import METHODS, make_options
from tonari.select.request import Request

if HAS_TORCH:
    from tests.helpers.launches import launched

QUEUES = ("insertion", "heap", "merge_queue")
# Options of the queues are tested in cuda/test_queues.py.
INTERPRETED = {name: options[:1] if name in QUEUES else options for name, options in GPU_VARIANTS.items()}


@interpreted
@pytest.mark.parametrize(
    "variant", [pytest.param(one.values, id=one.id) for one in variants({name: INTERPRETED[name] for name in METHODS})]
)
def test_interpreted_kernels(variant: tuple[str, dict[str, Any]]) -> None:
    method, options = variant
    rows, n, k = (33, 10, 3) if method in QUEUES else (2, 50, 7)  # 32 rows to a program, or 1
    values = make("zeros", rows, n, "bfloat16")
    found, row = select_by_kernels("cpu", method, values, k, largest=True, **options)
    assert row is None
    assert_selection(found, values, k, largest=True)


@interpreted
@pytest.mark.parametrize("method", METHODS)
def test_interpreted_kernels_keep_to_lengths_and_find_nan(method: str) -> None:
    values = select_checks.torch.from_numpy(make("two_valued", 4, 12, "float64"))
    lengths = np.array([0, 12, 3, 9])
    found, row = select_by_kernels("cpu", method, values, 4, lengths=lengths, sorted=False)
    assert row is None
    assert_selection(found, values, 4, lengths=lengths, sorted=False)
    values[1, 11] = values[3, 8] = values[2, 3] = float("nan")
    assert select_by_kernels("cpu", method, values, 4, lengths=lengths)[1] == 1
    lengths[1] = 11
    found, row = select_by_kernels("cpu", method, values, 11, lengths=lengths, nan="last")
    assert row is None
    assert_selection(found, values, 11, lengths=lengths, nan="last")


@interpreted
def test_interpreted_without_rows() -> None:
    found, row = select_by_kernels("cpu", "radix", make("random", 0, 4, "float32"), 2)
    assert (row, found.values.shape, found.indices.shape) == (None, (0, 2), (0, 2))
    assert found.indices.dtype == select_checks.torch.int32


@interpreted
@pytest.mark.parametrize("method", ["threshold", "radix"])
def test_the_first_selection_of_a_shape_compiles_its_kernels_together(
    method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    stages: list[Any] = []
    monkeypatch.setattr(dispatch, "expecting", lambda stage: stages.append(stage) or nullcontext())
    values = select_checks.torch.from_numpy(make("random", 3, 40, "float32"))
    request = Request(values, "float32", 5, make_options(method, {}, "cuda"))
    dispatch._compiled.clear()
    with launched() as seen:
        dispatch.select_alone(method, request)
        dispatch.select_alone(method, request)
    (stage,) = stages
    with rehearsing(Card((0, 0), 1)) as rehearsal:
        stage()
    assert {variant[0].__name__ for variant in seen} == {call.name for call in rehearsal.calls.values()}
    dispatch.select_alone(method, replace(request, k=4))
    assert len(stages) == 2
