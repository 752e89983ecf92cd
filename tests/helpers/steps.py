"""Records the steps of a search on a device in order: launched kernels, and waits of the host for results."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from tests.helpers.launches import launching

WAITS = {"_local_scalar_dense", "nonzero"}  # torch operators that wait, since the host needs their results


class _Operators(TorchDispatchMode):
    """Records the torch operators that wait, or all torch operators."""

    def __init__(self, steps: list[str], *, every: bool) -> None:
        super().__init__()
        self.steps, self.every, self.quiet = steps, every, False

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = function(*args, **(kwargs or {}))
        name = function.overloadpacket.__name__
        if not self.quiet and self.every:
            self.steps.append(f"{function}{tuple(made.shape) if isinstance(made, torch.Tensor) else ''}")
        elif not self.quiet and name in WAITS:
            self.steps.append("wait")
        return made


@contextmanager
def steps(*, every: bool = False) -> Iterator[list[str]]:
    """Record the steps of the searches in the context: names of kernels, and "wait".

    With `every`, also record the programs and constants of kernels, and all torch operators with their shapes.
    """
    usual, as_list, seen = launching.launch, torch.Tensor.tolist, list[str]()
    operators = _Operators(seen, every=every)

    def noting(kernel: Any, programs: int, arguments: Mapping[str, Any], **options: Any) -> None:
        name = str(kernel.fn.__name__).removesuffix("_kernel")
        seen.append(f"{name} {programs} {sorted(options.items())}" if every else name)
        before, operators.quiet = operators.quiet, True
        try:
            usual(kernel, programs, arguments, **options)
        finally:
            operators.quiet = before

    def to_list(tensor: Any) -> Any:
        if not operators.quiet:
            seen.append("wait")
        before, operators.quiet = operators.quiet, True
        try:
            return as_list(tensor)
        finally:
            operators.quiet = before

    with pytest.MonkeyPatch.context() as patched, operators:
        for name, module in list(sys.modules.items()):
            if name.startswith("tonari.") and getattr(module, "launch", None) is usual:
                patched.setattr(module, "launch", noting)
        patched.setattr(torch.Tensor, "tolist", to_list)
        yield seen


def in_short(given: list[str]) -> str:
    """Format steps in one line, and count consecutive equal steps: "pack 2*screen wait"."""
    counted = [(name, len(list(same))) for name, same in itertools.groupby(given)]
    return " ".join(name if count == 1 else f"{count}*{name}" for name, count in counted)
