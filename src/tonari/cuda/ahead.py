"""Compile all kernels of a search together, when the first of them is missing.

    dispatch     expecting(stage)      registers the rehearsal of the search that begins (rehearsal.py); takes 2 µs
    launch       prepare_for(call)     for a kernel that this process does not have yet: nothing if Triton has it on
                                       disk; else the search is rehearsed once, and threads (compile.py) compile all
                                       its missing kernels

The search waits for all of them, because its first batch needs nearly all. If one expectation is inside another, such
as the search for the true neighbours of some rows inside NN-Descent, both are rehearsed, and their kernels are compiled
together. Failures are logged as warnings; such a kernel is compiled at its launch.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, TypeAlias

from tonari.core.progress import ProgressLike
from tonari.core.trail import unrecorded
from tonari.core.workers import default_threads
from tonari.cuda.compile import compile_together, is_compiled
from tonari.cuda.rehearsal import Call, Card, rehearsing

logger = logging.getLogger("tonari")

# Makes rows on the device "meta" and does with them what a search does.
Stage: TypeAlias = Callable[[], None]


@dataclass
class Expectation:
    """The rehearsal of a running search, a mark whether it was done, and the enclosing expectation."""

    stage: Stage
    progress: ProgressLike
    outer: Expectation | None = None
    used: bool = False

    def unused(self) -> list[Expectation]:
        """Return the expectations without a rehearsal so far: this one and the enclosing ones, innermost first."""
        around = [] if self.outer is None else self.outer.unused()
        return around if self.used else [self, *around]


_expected: ContextVar[Expectation | None] = ContextVar("tonari_expected", default=None)


@contextlib.contextmanager
def expecting(stage: Stage, progress: ProgressLike = None) -> Iterator[None]:
    """Return a context: if a kernel has to be compiled inside it, rehearse `stage` and compile all its kernels.

    Parameters
    ----------
    stage : callable
        Called at most once.
    progress : None, bool or callable(done, total)
        As for :func:`tonari.search`; a callable counts pairs, so kernels are not reported to it. Inside another
        expectation, that expectation's `progress` is used, and its stage is rehearsed too if that has not been done.
    """
    outer = _expected.get()
    before = _expected.set(Expectation(stage, progress if outer is None else outer.progress, outer))
    try:
        yield
    finally:
        _expected.reset(before)


def prepare_for(call: Call, device: Any) -> None:
    """Compile all kernels of the current search if this call has to be compiled; never raises.

    Parameters
    ----------
    call : Call
        A launch of a kernel that this process does not have.
    device : torch.device
        A CUDA device.
    """
    expected = _expected.get()
    if expected is None or expected.used:
        return
    try:
        if default_threads() > 1 and not is_compiled(call):
            together = expected.unused()
            for each in together:
                each.used = True
            compile_ahead(lambda: _rehearse(together), card_of(device), progress=expected.progress)
    except Exception:  # not the search's: it compiles by itself, and raises what is wrong with that
        expected.used = True
        logger.warning("kernels cannot be compiled ahead, and are compiled one by one", exc_info=True)


def _rehearse(together: list[Expectation]) -> None:
    for each in together:
        each.stage()


def compile_ahead(stage: Stage, card: Card, *, progress: ProgressLike = None) -> int:
    """Compile the missing kernels of a rehearsal, and return their number.

    Kernels that fail are logged as a warning.
    """
    with unrecorded(), rehearsing(card) as rehearsal:
        stage()
    calls = [call for call in rehearsal.calls.values() if not is_compiled(call)]
    if calls:
        compile_together(calls, progress)
    return len(calls)


def card_of(device: Any) -> Card:
    """Return the properties of a CUDA device on which launches depend."""
    import torch

    found = torch.cuda.get_device_properties(device)
    return Card((found.major, found.minor), found.multi_processor_count)
