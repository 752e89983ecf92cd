"""Every backend has the steps that the driver runs, with the same parameters."""

from __future__ import annotations

import inspect
from typing import Any

from tests.helpers.devices import HAS_TORCH
from tonari.nn_descent.backend import Backend
from tonari.nn_descent.cpu.backend import CpuBackend
from tonari.nn_descent.reference import ReferenceBackend

BACKENDS: list[Any] = [CpuBackend, ReferenceBackend]
if HAS_TORCH:
    from tonari.nn_descent.cuda.backend import CudaBackend
    from tonari.nn_descent.papers.cuda.gnnd import GnndBackend

    BACKENDS += [CudaBackend, GnndBackend]
STEPS = [name for name in vars(Backend) if not name.startswith("_")]


def test_a_backend_has_all_steps() -> None:
    for backend in BACKENDS:
        assert len(STEPS) == 7
        for step in STEPS:
            expected, found = (inspect.signature(getattr(each, step)) for each in (Backend, backend))
            assert list(found.parameters) == list(expected.parameters), step
            for name, one in expected.parameters.items():
                assert (found.parameters[name].kind, found.parameters[name].default) == (one.kind, one.default), (
                    step,
                    name,
                )
